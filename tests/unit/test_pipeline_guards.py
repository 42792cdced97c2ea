"""Requests that guards read, from their bodies to their answers, in virtual time."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from router.acting.latencies import Latencies
from router.asking.answer_cache import AnswerCache
from router.asking.asker import Asker
from router.asking.errors import CallError, CallTimeout, Overloaded, Rejected, Unavailable
from router.asking.line import Line
from router.asking.overload.desk import Desk
from router.config.actions import Recording
from router.config.load import load
from router.config.plan import Plan
from router.config.services import ReplaySettings
from router.explaining.debugging import trace_of
from router.explaining.explanation import explain
from router.explaining.notes import Notes
from router.explaining.preview import as_json
from router.explaining.records import Encoder, Recorder
from router.explaining.redeciding import Redecider
from router.explaining.spans import request_span
from router.generation import Generation
from router.judging import Judge
from router.observe import Metrics
from router.pipeline import Pipeline
from router.questions import QuestionType
from router.verdict import Forward
from router.wire.http import Reply
from router.wire.neutral import Turn, build
from router.wire.surface import Format
from tests.support.plans import EVERYTHING, connections, generation_of
from tests.support.virtual_time import run
from tests.unit.test_pipeline import CHAT, body, post, value

CAN = replace(
    EVERYTHING,
    presets={
        "jailbreak": QuestionType.NOUL,
        "safety": QuestionType.NOUL,
        "pii": QuestionType.SPAN,
        "domains": QuestionType.CHOICE,
    },
    preset_labels={"pii": ("PERSON", "CREDIT_CARD")},
    preset_thresholds={"jailbreak": 0.8, "safety": 0.8, "pii": 0.5},
    max_input_tokens=32_768,
)
CONFIG = """\
version: v0.5
listeners: [{name: public, address: 127.0.0.1, port: 8801}]
providers:
  models:
    - {name: coder, backend_refs: [{endpoint: "http://127.0.0.1:9101/v1"}]}
recipes:
  - name: guarded
    signals:
      keywords: [{name: fast, operator: OR, keywords: [plugh]}]
      jailbreak: [{name: attack ATTACK}]
      safety: [{name: harm}]
      pii: [{name: personal}]
      systemone:
        - {name: is_code, question: {type: noul, instructions: Is it code?}, predicate: {gte: 0.5}, timeout_ms: 60000}
    decisions:
      - name: fast
        priority: 30
        rules: {operator: OR, conditions: [{type: keyword, name: fast}]}
        modelRefs: [{model: coder}]
      - name: block
        priority: 20
        rules:
          operator: OR
          conditions:
            - {type: jailbreak, name: attack}
            - {type: safety, name: harm}
            - {type: pii, name: personal, label: CREDIT_CARD}
        plugins: [{type: fast_response, configuration: {message: refused}}]
      - name: code
        priority: 10
        rules: {operator: OR, conditions: [{type: systemone, name: is_code}]}
        modelRefs: [{model: coder}]
      - {name: rest, rules: {}, modelRefs: [{model: coder}]}
entrypoints: [{model_names: [auto], recipe: guarded, default: true}]
global:
  model_catalog:
    deployments:
      guard: {provider: model_runtime, artifact: tiny, scan_window: {tokens: 256, overlap: 16}}
    system: {decision_model: guard}
    CATALOG
"""
SIGNAL = 'signal="jailbreak:attack"'
LONG = " ".join(f"day {day} was quiet." for day in range(1500))
START = 10.0
Says = Callable[[str, str, float], CallError | float]


def words(text: str, preset: str, now: float) -> float:
    return 0.95 if {"jailbreak": "xyzzy", "safety": "harmful", "pii": "4111"}.get(preset, "def ") in text else 0.01


def plan_with(attack: str = "", catalog: str = "", window: str = "", config: str = CONFIG) -> Plan:
    text = config.replace(" ATTACK", attack and f", {attack}").replace("CATALOG", catalog)
    text = text.replace("overlap: 16}", f"overlap: 16{window}}}")
    return load(text, environ={}, describe=lambda _: CAN, serving=True).plan


class House:
    """A pipeline over one model, each call of which takes a second."""

    def __init__(self, says: Says = words, **settings: str) -> None:
        self.says, self.sent = says, list[dict[str, Any]]()
        self.plan = plan_with(**settings)
        self.metrics = Metrics()
        self.notes = Notes()
        self.took = 0.0

    async def decide(self, sent: bytes, timeout_s: float, told: object = None) -> bytes:
        request = orjson.loads(sent)
        self.sent.append(request)
        await asyncio.sleep(1.0)
        states = [request, *request.get("states", {}).values()]
        found = [{key: self._answer(each["state"], one) for key, one in each["questions"].items()} for each in states]
        more = {"states": {f"s{i}": {"answers": each} for i, each in enumerate(found) if i}} if found[1:] else {}
        return orjson.dumps({"answers": found[0], **more})

    def _answer(self, text: str, question: Mapping[str, Any]) -> dict[str, Any]:
        said = self.says(text, question.get("preset", ""), asyncio.get_running_loop().time() - START)
        if isinstance(said, CallError):
            raise said
        if question["type"] != "span":
            return {"type": "noul", "noul": said}
        at = text.find("4111")
        spans = [{"label": "CREDIT_CARD", "start": at, "end": at + 4, "probability": said}] if at >= 0 else []
        return {"type": "span", "spans": spans, "word_probability": said}

    def decided(self, text: str) -> Reply | Forward:
        async def work() -> Reply | Forward:
            loop = asyncio.get_running_loop()
            await asyncio.sleep(START)
            desk = Desk(loop)
            line = Line(self, cache=AnswerCache(clock=loop.time), clock=loop.time, desk=desk, gate="g")
            generation = Generation(self.plan, connections(), Asker({"guard": line}, clock=loop.time), desk)
            self.generation = generation
            pipeline = Pipeline(generation, self.metrics, clock=loop.time)
            found = await pipeline.decided(post(CHAT), body(text=text), notes=self.notes)
            self.took = loop.time() - START
            return found

        return run(work())

    def preview(self) -> dict[str, Any]:
        return as_json(
            explain(self.plan, self.generation.policies["guarded"].compiled, self.notes), self.plan, trace=True
        )

    def record(self) -> dict[str, Any]:
        kept: list[Any] = []

        def put(item: object) -> bool:
            kept.append(item)
            return True

        writer = cast(Any, SimpleNamespace(put=put))
        recorder = Recorder(ReplaySettings("", 100, 0, Recording(True)), writer)
        recorder.seen(self.plan, post(CHAT), b"", self.notes)
        row = Encoder()(kept[0])
        return {**row.summary, **row.detail}  # type: ignore[union-attr]


def refused(found: Reply | Forward) -> bool:
    return isinstance(found, Reply) and found.status == 200 and b"refused" in found.body


def test_a_short_harmless_request_takes_one_call() -> None:
    house = House()
    found = house.decided("hello")
    assert isinstance(found, Forward)
    assert "warnings" not in found.metadata
    assert len(house.sent) == 1
    assert len(house.sent[0]["questions"]) == 4
    assert house.preview()["scan_coverage"] == {
        "systemone:is_code": "full",
        "keyword:fast": "full",
        "jailbreak:attack": "full",
        "safety:harm": "full",
        "pii:personal": "full",
    }
    assert value(house.metrics, f'vsr_signal_scan_coverage_total{{result="full",{SIGNAL}}}') == 1


@pytest.mark.parametrize("text", ["xyzzy", "a harmful thing", "card 4111"])
def test_what_a_guard_finds_is_refused(text: str) -> None:
    for around in ("", LONG):
        house = House()
        assert refused(house.decided(f"{around} {text}"))
        assert house.took == pytest.approx(1.0)


def test_the_first_window_that_refuses_ends_the_reading() -> None:
    house = House()
    assert refused(house.decided(f"{LONG} xyzzy"))
    assert house.took == pytest.approx(1.0)
    assert len(house.sent) == 5  # the routing question, and four windows at once
    assert value(house.metrics, f"vsr_signal_scan_decided_total{{{SIGNAL}}}") == 1
    assert value(house.metrics, "pointsman_signal_failed_closed_total") == 0
    fact = next(each for each in house.preview()["signals"] if each["key"] == "jailbreak:attack")
    assert fact["coverage"] == f"partial 1/{fact['scan']['windows']}"
    assert (fact["scan"]["decided"], fact["matched"]) == (True, True)
    assert fact["scan"]["unread"]


def test_a_long_harmless_request_is_read_whole() -> None:
    house = House()
    found = house.decided(LONG)
    assert isinstance(found, Forward)
    assert "warnings" not in found.metadata
    assert house.preview()["scan_coverage"]["jailbreak:attack"] == "full"


def test_what_was_read_in_part_is_told_to_every_caller() -> None:
    house = House(catalog="signal_timeout_ms: 2500")
    found = house.decided(LONG)
    assert isinstance(found, Forward)
    assert found.metadata["warnings"] == "scan_partial"
    assert house.took == pytest.approx(2.5)
    told = house.record()["scan_coverage"]["jailbreak:attack"]
    assert told.startswith("partial 8/")
    assert orjson.loads(trace_of(house.plan, house.notes))["scan_coverage"]["jailbreak:attack"] == told
    assert value(house.metrics, f'vsr_signal_scan_coverage_total{{result="partial",{SIGNAL}}}') == 1
    (whole,) = (
        each for each in request_span(house.plan, house.notes, 0).children if each.name.endswith("signal.evaluation")
    )
    assert "semantic_router.signal.jailbreak" in {span.name for span in whole.children}


@pytest.mark.parametrize(
    ("attack", "policy"), [("min_coverage: 0.9", "on_unknown"), ("on_unscanned: match", "on_unscanned")]
)
def test_too_little_read_fails_closed_and_is_no_detection(
    attack: str, policy: str, caplog: pytest.LogCaptureFixture
) -> None:
    house = House(attack=attack, catalog="signal_timeout_ms: 2500")
    with caplog.at_level(logging.WARNING, "pointsman.judging"):
        assert refused(house.decided(LONG))
    assert [record.message for record in caplog.records] == ["signal_failed_closed"]
    assert caplog.records[0].fields["signals"] == [f"jailbreak:attack ({policy}: timeout)"]  # type: ignore[attr-defined]
    assert value(house.metrics, f'pointsman_signal_failed_closed_total{{policy="{policy}",{SIGNAL}}}') == 1
    assert value(house.metrics, "llm_signal_match_total") == 0
    assert house.preview()["signals"][2]["scan"]["failed_closed"] == policy


def test_a_model_that_is_down_refuses_unless_the_rules_say_otherwise() -> None:
    down: Says = lambda *_: Unavailable("down")  # noqa: E731
    assert refused(House(down).decided("hello"))
    text = CONFIG.replace("{name: personal}", "{name: personal, on_unknown: no_match}")
    house = House(down, attack="on_unknown: no_match")
    house.plan = load(
        text.replace(" ATTACK", ", on_unknown: no_match").replace("CATALOG", ""),
        environ={},
        describe=lambda _: CAN,
        serving=True,
    ).plan
    found = house.decided("hello")
    assert isinstance(found, Forward)
    assert house.preview()["scan_coverage"]["jailbreak:attack"] == "none"
    assert "warnings" not in found.metadata


FAILURES: dict[str, CallError | str] = {
    "down": Unavailable("down"),
    "late": CallTimeout("late"),
    "refused": Rejected("refused"),
    "busy": Overloaded("no room"),
    "no answer": "nothing",
    "no probability": "7",
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("text", ["hello", LONG], ids=["one window", "many"])
@pytest.mark.parametrize("family", ["jailbreak", "pii"])
def test_whatever_fails_fails_closed(failure: CallError | str, text: str, family: str) -> None:
    house = House()

    async def decide(sent: bytes, timeout_s: float, told: object = None) -> bytes:
        if isinstance(failure, CallError):
            raise failure
        return b"{}" if failure == "nothing" else orjson.dumps({"answers": {"g0": {"type": "noul", "noul": 7}}})

    house.decide = decide  # type: ignore[method-assign]
    (kept,) = (rule for rule in house.plan.recipes["guarded"].guards if rule.family == family)
    rules = tuple(
        replace(rule, on_unknown="no_match") if rule is not kept else rule
        for rule in house.plan.recipes["guarded"].guards
    )
    recipe = replace(house.plan.recipes["guarded"], guards=rules)
    house.plan = replace(house.plan, recipes={"guarded": recipe})
    assert refused(house.decided(text))
    assert (
        value(house.metrics, f'pointsman_signal_failed_closed_total{{policy="on_unknown",signal="{kept.name}"}}') == 1
    )
    assert value(house.metrics, "llm_signal_match_total") == 0


@pytest.mark.parametrize(
    "text", ["hello", "xyzzy", "harmful", "4111", "plugh", "plugh xyzzy", "def f", "def 4111", " "]
)
def test_both_ways_of_asking_select_the_same(text: str) -> None:
    came = [House(catalog=catalog) for catalog in ("", "ask: needed")]
    for house in came:
        house.decided(text)
    first, second = (house.notes.outcome.selected for house in came if house.notes.outcome is not None)
    assert first == second


def test_a_request_without_text_passes() -> None:
    house = House()
    assert isinstance(house.decided(" "), Forward)
    assert "jailbreak:attack" not in house.record()["scan_coverage"]


def test_only_needed_guards_are_asked() -> None:
    house = House(catalog="ask: needed")
    assert isinstance(house.decided("plugh xyzzy"), Forward)
    assert house.sent == []
    assert house.preview()["signals"][2]["reason"] == "not_asked"
    other = House(catalog="ask: needed")
    assert refused(other.decided("xyzzy"))


def test_overload_is_answered_by_an_error_that_clients_retry() -> None:
    full: Says = lambda *_: Overloaded("no room")  # noqa: E731
    waiting = "on_signal_overload: {action: retry, wait_ms: 3000}"
    house = House(full, catalog=waiting)
    found = house.decided(LONG)
    assert isinstance(found, Reply)
    assert found.status == 429
    assert refused(House(full, catalog="on_signal_overload: {action: refuse}").decided(LONG))


def test_windows_that_had_no_room_are_asked_again() -> None:
    busy: Says = lambda text, preset, now: Overloaded("no room") if now < 2.5 else words(text, preset, now)  # noqa: E731
    for text, goes in ((LONG, False), (f"{LONG} xyzzy", True)):
        house = House(busy, catalog="on_signal_overload: {action: retry, wait_ms: 60000}")
        assert refused(house.decided(text)) is goes
        assert house.took < 200


@pytest.mark.parametrize("attack", ["", "on_unscanned: match", "on_unscanned: unknown", "min_coverage: 0.99"])
def test_a_part_left_unread_for_overload_is_neither_let_through_nor_refused(
    attack: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What was read holds nothing; what was not could."""
    calls = iter(range(1000))
    some: Says = lambda text, preset, now: Overloaded("no room") if next(calls) > 30 else 0.01  # noqa: E731
    house = House(some, attack=attack, catalog="on_signal_overload: {action: retry, wait_ms: 3000}")
    found = house.decided(LONG)
    assert isinstance(found, Reply)
    assert found.status == 429
    assert "signal_failed_closed" not in caplog.text


@pytest.mark.parametrize("read", [0, 10, 60])
@pytest.mark.parametrize("attack", ["", "on_unknown: no_match", "on_unscanned: no_match"])
def test_the_deadline_of_all_signals_leaves_what_waits_for_room_unread_for_overload(read: int, attack: str) -> None:
    """Not as a late answer would: that refuses as if it were an attack, or lets a part that nobody read through."""
    calls = iter(range(1000))
    some: Says = lambda text, preset, now: Overloaded("no room") if next(calls) >= read else 0.01  # noqa: E731
    catalog = "on_signal_overload: {action: retry, wait_ms: 60000}\n    signal_timeout_ms: 9500"
    house = House(some, attack=attack, catalog=catalog)
    found = house.decided(LONG)
    assert isinstance(found, Reply)
    assert (found.status, house.took) == (429, 9.5)
    ended = 'vsr_signal_overload_waits_total{deployment="guard",outcome="overloaded"}'
    assert value(house.metrics, ended) == 4 + (read == 0), "what was in flight, and the routing question's call"
    if read == 0:
        assert house.notes.waited is not None
        assert house.notes.waited.ended == "overloaded"


def test_who_is_refused_by_a_guard_waits_for_no_question(caplog: pytest.LogCaptureFixture) -> None:
    """Also where a question could refuse by a decision that ranks above, so that the match alone settles nothing."""
    config = CONFIG.replace(
        "priority: 10\n        rules: {operator: OR, conditions: [{type: systemone, name: is_code}]}\n"
        "        modelRefs: [{model: coder}]",
        "priority: 25\n        rules: {operator: OR, conditions: [{type: systemone, name: is_code}]}\n"
        "        plugins: [{type: fast_response, configuration: {message: refused}}]",
    )
    full: Says = lambda text, preset, now: words(text, preset, now) if preset else Overloaded("no room")  # noqa: E731
    house = House(full, catalog="on_signal_overload: {action: retry, wait_ms: 30000}", config=config)
    assert refused(house.decided(f"{LONG} xyzzy"))
    assert house.took == 1.0
    assert len(house.sent) < 9
    assert "signal_failed_closed" not in caplog.text, "what nobody waited for has not failed"


@pytest.mark.parametrize(("wait_ms", "calls", "took"), [(3000, 20, 5.0), (0, 5, 1.0)])
def test_a_long_input_is_answered_when_its_wait_ends_and_asks_nothing_more(
    wait_ms: int, calls: int, took: float
) -> None:
    """A model that still refuses is not asked about each window that is left, only to refuse that as well."""
    full: Says = lambda *_: Overloaded("no room")  # noqa: E731
    house = House(full, catalog=f"on_signal_overload: {{action: retry, wait_ms: {wait_ms}}}")
    found = house.decided(LONG)
    assert isinstance(found, Reply)
    assert found.status == 429
    assert house.took == pytest.approx(took, abs=0.05)
    assert len(house.sent) <= calls


def test_windows_left_are_read_when_others_find_room_after_a_wait_in_vain() -> None:
    """A window that was given up leaves the request to come back for it, but an attack in another is refused."""

    def says(text: str, preset: str, now: float) -> CallError | float:
        return Overloaded("no room") if text in LONG[-1100:] and now < 99 else words(text, preset, now)

    house = House(says, catalog="on_signal_overload: {action: retry, wait_ms: 3000}")
    found = house.decided(LONG)
    assert isinstance(found, Reply)
    assert (found.status, refused(found)) == (429, False)
    assert len(house.sent) > 32
    middle = len(LONG) // 2
    assert refused(
        House(says, catalog="on_signal_overload: {action: retry, wait_ms: 3000}").decided(
            f"{LONG[:middle]} xyzzy {LONG[middle:]}"
        )
    )


def test_more_than_eight_windows_without_room_send_one_ahead() -> None:
    sent: dict[str, list[float]] = {}

    def says(text: str, preset: str, now: float) -> CallError | float:
        times = sent.setdefault(text, [])
        if now not in times:
            times.append(now)  # when it is answered, a second after it was sent
        return Overloaded("no room") if now < 20.5 else words(text, preset, now)

    waiting = "on_signal_overload: {action: retry, wait_ms: 60000}"
    house = House(says, catalog=waiting, window=", max_parallel: 64")
    assert isinstance(house.decided(LONG), Forward)
    windows = len(sent)
    assert windows > 30
    (first, all_at_once), *probes, (opened, others) = sorted(Counter(itertools.chain(*sent.values())).items())
    assert (first, all_at_once) == (1.0, windows)
    assert len(probes) > 3
    assert {count for _, count in probes} == {1}, "one window, alone, per step"
    assert all(later - earlier > 0.75 for (earlier, _), (later, _) in itertools.pairwise(probes[3:]))
    answered = next(at for at, _ in probes if at >= 20.5)
    assert opened == pytest.approx(answered + 1.0), "the answer to it lets all others ask"
    assert others + sum(at >= 20.5 for at, _ in probes) == windows


@pytest.mark.parametrize(("turns", "each", "large"), [(1, 300_000, True), (10_000, 1, True), (100, 100, False)])
def test_what_is_large_by_its_text_or_by_its_turns_is_read_on_a_thread(
    monkeypatch: pytest.MonkeyPatch, turns: int, each: int, large: bool
) -> None:
    on_thread: list[object] = []

    async def thread(work: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        on_thread.append(work)
        return work(*arguments, **more)

    monkeypatch.setattr(asyncio, "to_thread", thread)
    request = build(Format.CHAT, "auto", False, "", [Turn("user", "x" * each)] * turns, ())
    judge = Judge(Metrics(), lambda: 0.0, lambda: 0.0, Latencies(lambda: 0.0))
    generation = generation_of(plan_with())
    guards = run(judge._guards(generation.policies["guarded"], request))
    assert (guards is not None, on_thread != []) == (True, large)


def test_recorded_requests_are_decided_again() -> None:
    house = House()
    assert refused(house.decided("xyzzy"))
    same = Redecider(house.plan).difference([house.record()])
    assert (same.same, same.undecided.count) == (1, 0)
    stricter = Redecider(plan_with(attack="threshold: 0.99")).difference([house.record()])
    assert [str(new) for _, new in stricter.changed] == ["rest → coder"]


def test_a_part_says_nothing_of_other_thresholds() -> None:
    house = House(catalog="signal_timeout_ms: 2500")
    assert isinstance(house.decided(LONG), Forward)
    assert Redecider(house.plan).difference([house.record()]).same == 1
    other = Redecider(plan_with(attack="threshold: 0.5", catalog="signal_timeout_ms: 2500"))
    assert other.difference([house.record()]).undecided.count == 1
