"""What holds of every scan, whatever is read, answered, late, lost or refused."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field

import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from router.config.sizes import ScanWindow
from router.questions import (
    Answer,
    NoulAnswer,
    Predicate,
    QuestionType,
    SetAnswer,
    Span,
    SpanAnswer,
    Unknown,
    UnknownReason,
)
from router.scan.machine import Ask, End, Lane, ScanMachine
from router.scan.pace import DeploymentPace
from router.scan.reading import Input
from router.scan.rules import Result, WatchedQuestion, WatchedRule
from router.scan.text import utf8_length
from router.scan.windows import MOST_WINDOWS, Window
from tests.support.scan_driving import zero

PIECES = st.sampled_from(
    [
        "plain words of text. ",
        "x" * 40,
        "é",
        "漢字",
        "😀",
        "👩\u200d👧",
        "e\u0301",
        "\r\n",
        "\x00",
        "\ud800",
        " \n",
        "MAIL ",
        "M\u200bA\u200bI\u200bL ",
        "s p a c e d   o u t ",
    ]
)
TEXTS = st.lists(PIECES, min_size=1, max_size=150).map("".join)
SIZES = st.builds(
    ScanWindow,
    size=st.integers(256, 600),
    overlap=st.integers(0, 100),
    max_size=st.integers(600, 2000),
    max_parallel=st.integers(1, 5),
    reread_margin=st.sampled_from([0.0, 1.0, 3.0, 20.0]),
)
LABELS = frozenset({"a", "b"})


def question(kind: QuestionType, key: str, chance: random.Random) -> WatchedQuestion:
    def rule(number: int) -> WatchedRule:
        at = chance.choice([0.3, 0.5, 0.9, 0.995])
        return WatchedRule(
            key=f"{key}/{number}",
            predicate=Predicate(gte=at) if kind is QuestionType.NOUL else None,
            labels=None if kind is QuestionType.NOUL else chance.choice([None, frozenset({"a"})]),
            threshold=chance.choice([at, None]),
            on_unscanned=chance.choice(["best_effort", "match", "no_match", "unknown"]),
            min_coverage=chance.choice([None, 0.5, 1.0]),
            whole=chance.random() < 0.3,
        )

    return WatchedQuestion(key, kind, tuple(rule(number) for number in range(chance.randrange(1, 3))))


@dataclass
class Adversary:
    """Answers what it likes, when it likes."""

    chance: random.Random
    failing: float
    loud: float

    def reply(self, ask: Ask, types: dict[str, QuestionType]) -> dict[str, Answer] | UnknownReason:
        if self.chance.random() < self.failing:
            lost: UnknownReason = self.chance.choice([*UnknownReason])
            return lost
        return {key: self.answer(types[key], ask) for key in ask.questions if self.chance.random() >= self.failing / 4}

    def answer(self, kind: QuestionType, ask: Ask) -> Answer:
        if self.chance.random() < self.failing / 2:
            wrong: list[Answer] = [Unknown(UnknownReason.TIMEOUT), NoulAnswer(float("nan")), SpanAnswer((), -3.0)]
            return self.chance.choice(wrong)
        high = self.chance.random() < self.loud
        probability = self.chance.random() if high else self.chance.random() ** 6
        if kind is QuestionType.NOUL:
            return NoulAnswer(probability)
        if kind is QuestionType.SET:
            return SetAnswer(frozenset(self.chance.sample(sorted(LABELS), int(high))), {"a": probability, "b": 0.1})
        start = self.chance.randrange(-2, len(ask.text) + 2)
        spans = (Span(self.chance.choice("ab"), start, start + self.chance.randrange(0, 9), probability),)
        return SpanAnswer(spans if high else (), probability)


@dataclass
class Watched:
    """A machine with what has been seen of it."""

    machine: ScanMachine
    sizes: ScanWindow
    inputs: dict[str, Input]
    in_flight: dict[int, Ask] = field(default_factory=dict)
    units: dict[int, tuple[Window, tuple[int, ...], bool]] = field(default_factory=dict)
    planned: list[tuple[str, int, bool]] = field(default_factory=list)
    matched: set[str] = field(default_factory=set)
    asked: int = 0

    def sent(self, asks: list[Ask]) -> None:
        assert self.machine.ended is None or not asks, "a window was sent after the end"
        for ask in asks:
            self.asked += 1
            self.in_flight[ask.id] = ask
            flight = self.machine._flights[ask.id]
            unit = flight.part.unit
            self.units[ask.id] = (unit.window, unit.planned, ask.twin)
            text = self.inputs[ask.input].text
            limit = self.sizes.max_size if unit.planned else self.sizes.size
            assert utf8_length(ask.text) <= max(limit, self.sizes.size)
            assert ask.text
            assert not ask.text.isspace()
            assert ask.questions
            if not ask.twin:
                assert text[unit.window.start.point : unit.window.end.point] == ask.text
                for number in unit.planned:
                    self.planned.append((ask.input, number, ask.twin))
        per_lane: dict[str, int] = {}
        for ask in self.in_flight.values():
            per_lane[ask.deployment] = per_lane.get(ask.deployment, 0) + 1
        if self.machine.ended is None:
            assert max(per_lane.values(), default=0) <= self.sizes.max_parallel

    def check(self) -> None:
        outcomes = self.machine.outcomes
        now = {rule for scan in self.machine._scans for each in scan.questions for rule in each.matched}
        assert self.matched <= now, "a match came undone"
        self.matched = now
        assert all(outcomes[rule].result is Result.MATCH for rule in now)
        for outcome in outcomes.values():
            coverage = outcome.coverage
            unread = sum(end - start for start, end in coverage.unread)
            assert coverage.bytes + unread == coverage.of_bytes
            assert (coverage.windows == 0) == (coverage.result == "none")
            assert (coverage.windows == coverage.of_windows) == (coverage.result == "full")
            assert coverage.result != "full" or not coverage.unread
            assert coverage.windows > 0 or coverage.bytes == 0


def request(
    texts: list[str], chance: random.Random, *, normalise: bool
) -> tuple[dict[str, Input], dict[str, QuestionType]]:
    kinds = [QuestionType.NOUL, QuestionType.SET, QuestionType.SPAN]
    inputs: dict[str, Input] = {}
    types: dict[str, QuestionType] = {}
    for at, text in enumerate(texts):
        asked = []
        for number in range(chance.randrange(1, 4)):
            key = f"{at}.{number}"
            types[key] = chance.choice(kinds)
            asked.append(question(types[key], key, chance))
        inputs[str(at)] = Input(str(at), chance.choice(["one", "two"]), text, tuple(asked), normalise)
    return inputs, types


@for_all(
    st.lists(TEXTS, min_size=1, max_size=3),
    SIZES,
    st.randoms(use_true_random=False),
    st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    st.sampled_from([0.0, 0.02, 0.3]),
    st.sampled_from([3.0, 30.0, 1e9]),
    st.booleans(),
)
@settings(max_examples=250, deadline=None)
def test_any_scan(
    texts: list[str],
    sizes: ScanWindow,
    chance: random.Random,
    failing: float,
    loud: float,
    deadline: float,
    normalise: bool,
) -> None:
    inputs, types = request(texts, chance, normalise=normalise)
    adversary = Adversary(chance, failing, loud)
    refusing = chance.random()
    lanes = {name: Lane(sizes, DeploymentPace()) for name in ("one", "two")}
    for size in (100, 500, 900, 300, 700):
        lanes["one"].pace.learn(size, 0.5 + size / 10_000)
    machine = ScanMachine(
        list(inputs.values()), lanes, deadline, lambda *_: chance.random() < refusing / 4, chance.randrange
    )
    watched = Watched(machine, sizes, inputs)
    waiting: list[tuple[float, int]] = []
    answered: list[tuple[int, dict[str, Answer]]] = []
    now = 0.0

    def sent(asks: list[Ask]) -> None:
        watched.sent(asks)
        for ask in asks:
            heapq.heappush(waiting, (now + chance.choice([0.0, 0.5, 1.0, 20.0]), ask.id))

    sent(machine.start(now))
    while machine.ended is None:
        assert waiting, "nothing is in flight and nothing ended"
        now, call = heapq.heappop(waiting)
        if chance.random() < 0.1:
            machine.overloaded(call)
            machine.freed(watched.in_flight[call].deployment, now)
        if chance.random() < 0.05:
            sent(machine.reconsider(now))
        reply = adversary.reply(watched.in_flight[call], types)
        ask = watched.in_flight.pop(call)
        if isinstance(reply, UnknownReason):
            sent(machine.failed(call, reply, now))
        else:
            if machine.ended is None and now <= deadline:
                answered.append((call, reply))
            sent(machine.answered(call, reply, now))
        assert ask.questions
        watched.check()
        assert watched.asked <= len(texts) * 2000

    # Each planned window was sent at most once.
    assert len(watched.planned) == len(set(watched.planned))
    for scan in machine._scans:
        assert len(scan.plan.order) <= MOST_WINDOWS
        assert {number for name, number, _ in watched.planned if name == scan.given.name} <= set(scan.plan.order)
    if machine.ended is End.READ and not failing:
        for outcome in machine.outcomes.values():
            assert str(outcome.coverage) == "full" or outcome.decided
    if not normalise:
        check_bytes(watched, answered, types)
    # Whatever comes late changes nothing.
    before = machine.outcomes
    for call in list(watched.in_flight):
        assert machine.answered(call, {}, now) == []
    assert machine.reconsider(now) == []
    assert machine.outcomes == before


def check_bytes(
    watched: Watched, answered: list[tuple[int, dict[str, Answer]]], types: dict[str, QuestionType]
) -> None:
    """What is said to be read is what was answered, byte for byte."""
    for scan in watched.machine._scans:
        for asked in scan.questions:
            read = bytearray(scan.text.bytes)
            for number in range(len(scan.plan.windows)):
                window = scan.plan.windows[number]
                text = scan.given.text[window.start.point : window.end.point]
                if asked._read[number] and text.isspace():
                    read[window.start.byte : window.end.byte] = b"\1" * window.size
            for call, reply in answered:
                window, planned, _ = watched.units[call]
                answer = reply.get(asked.question.key)
                if planned and sound(types[asked.question.key], answer):
                    read[window.start.byte : window.end.byte] = b"\1" * window.size
            coverage = asked.outcome(
                asked.question.rules[0], scan.plan.windows, UnknownReason.TIMEOUT, cut=False, looks=0
            ).coverage
            assert coverage.bytes == sum(read)
            for start, end in coverage.unread:
                assert not any(read[start:end])


def sound(kind: QuestionType, answer: Answer | None) -> bool:
    if kind is QuestionType.NOUL:
        return isinstance(answer, NoulAnswer) and 0 <= answer.probability <= 1
    if kind is QuestionType.SET:
        return isinstance(answer, SetAnswer)
    return isinstance(answer, SpanAnswer) and answer.word_probability >= 0


@for_all(TEXTS, SIZES, st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_everything_flagged_is_covered_in_the_whole_input(text: str, sizes: ScanWindow, chance: random.Random) -> None:
    """A detector that is exact flags every MAIL that it sees, written plainly or in disguise."""
    rule = WatchedRule("pii", labels=frozenset({"EMAIL"}), whole=True)
    given = Input("user", "one", text, (WatchedQuestion("q", QuestionType.SPAN, (rule,)),))
    wide = ScanWindow(sizes.size, max(sizes.overlap, 40), sizes.max_size, sizes.max_parallel, sizes.reread_margin)
    machine = ScanMachine([given], {"one": Lane(wide, DeploymentPace())}, 1e9, lambda *_: False, chance.randrange)
    waiting = machine.start(0.0)
    while waiting:
        ask = waiting.pop(chance.randrange(len(waiting)))
        found: list[Span] = []
        at = ask.text.find("MAIL")
        while at >= 0:
            found.append(Span("EMAIL", at, at + 4, 0.9))
            at = ask.text.find("MAIL", at + 1)
        waiting += machine.answered(ask.id, {"q": SpanAnswer(tuple(found), 0.9 * bool(found))}, 1.0)
    outcome = machine.outcomes["pii"]
    assert isinstance(outcome.answer, SpanAnswer) or outcome.answer is None
    spans = outcome.answer.spans if outcome.answer is not None else ()
    covered = bytearray(len(text))
    for span in spans:
        assert 0 <= span.start < span.end <= len(text)
        covered[span.start : span.end] = b"\1" * (span.end - span.start)
    for shape in ("MAIL", "M\u200bA\u200bI\u200bL"):
        at = text.find(shape)
        while at >= 0:
            assert all(covered[at : at + len(shape)]), "a flagged text is not covered"
            at = text.find(shape, at + 1)
    # And hardly anything else is.
    for span in spans:
        found_there = text[span.start : span.end]
        assert "MAIL" in found_there.replace("\u200b", "")
        assert len(found_there) <= 12


@pytest.mark.parametrize("parallel", [1, 4])
def test_a_scan_in_which_every_call_fails_ends(parallel: int) -> None:
    rule = WatchedRule("attack", Predicate(gte=0.5), threshold=0.5)
    given = Input("user", "one", "word " * 20_000, (WatchedQuestion("q", QuestionType.NOUL, (rule,)),))
    lane = Lane(ScanWindow(1024, 64, 4096, parallel), DeploymentPace())
    machine = ScanMachine([given], {"one": lane}, 1e9, lambda *_: False, zero)
    waiting = machine.start(0.0)
    calls = 0
    while waiting:
        calls += 1
        waiting += machine.failed(waiting.pop().id, UnknownReason.UNAVAILABLE, 0.0)
    assert machine.ended is End.READ
    assert calls == machine.outcomes["attack"].coverage.of_windows
    assert machine.outcomes["attack"].reason is UnknownReason.UNAVAILABLE
