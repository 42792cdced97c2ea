"""What is recorded of a request, and what another configuration makes of the records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.config.actions import Recording as What
from router.config.services import ReplaySettings
from router.explaining.answers import answer_record, reading_record, recorded_answer, recorded_reading
from router.explaining.endings import Ended
from router.explaining.records import OTHER, Encoder, Recorder, Sketch
from router.explaining.redeciding import Difference, Redecider
from router.observe import Metrics
from router.observe.replay import Bounds, ReplayWriter
from router.observe.replay_sqlite import SqliteReplays, SqliteStore
from router.pipeline import Pipeline
from router.questions import (
    Answer,
    ChoiceAnswer,
    NoulAnswer,
    ScoreAnswer,
    SetAnswer,
    Span,
    SpanAnswer,
    Unknown,
    UnknownReason,
)
from router.signals.reading import Reading
from router.verdict import Forward
from router.wire.http import Head, Reply
from tests.support.plans import PLAIN, ScriptedAsker, generation_of, plan_of
from tests.unit.explaining.test_explaining_costs import PRICED

YES, NO, LATE = NoulAnswer(0.9), NoulAnswer(0.1), Unknown(UnknownReason.TIMEOUT)
CANARY = "canary-5150"
CLOSED = ReplaySettings("", 100, 0, What())
OPEN = ReplaySettings("", 100, 0, What(True, True, True, 60), True)
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}


class Recording:
    """A pipeline whose requests are recorded in a file."""

    def __init__(self, folder: Path, settings: ReplaySettings = CLOSED) -> None:
        self.path = folder / "replay.db"
        self.now = 1_000_000.0
        store = SqliteStore(self.path, Bounds(100, 0))
        self.writer: ReplayWriter[Sketch | Ended] = ReplayWriter(store, Encoder())
        self.recorder = Recorder(settings, self.writer, clock=lambda: self.now)

    async def send(
        self, body: dict[str, Any], answer: Answer = YES, text: str = PLAIN, path: str = PATHS["chat"]
    ) -> Reply | Forward:
        pipeline = Pipeline(generation_of(plan_of(text), ScriptedAsker({"is_code": answer})), Metrics())
        pipeline.show_to([self.recorder])
        headers = {"x-session-id": CANARY, "x-request-id": "req-1", "x-canary": CANARY}
        return await pipeline.decided(Head("POST", path, headers), orjson.dumps(body))

    def records(self, *, content: bool = False) -> list[dict[str, Any]]:
        self.writer.start()
        self.writer.stop()
        replays = SqliteReplays(self.path)
        found = [replays.get(one["id"], content=content) for one in replays.find({}, limit=100)[1]]
        return [one for one in found if one is not None]


def on_disk(folder: Path) -> bytes:
    return b"".join(each.read_bytes() for each in folder.iterdir())


def chat(model: str = "auto", text: str = "hi") -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": text}]}


async def test_a_record_says_how_a_request_was_decided(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    verdict = await recording.send(chat())
    assert isinstance(verdict, Forward)
    (record,) = recording.records()
    assert record["id"] == verdict.metadata["replay_id"]
    assert (record["recipe"], record["decision"], record["selected_model"]) == ("ask", "code", "coder")
    assert (record["lifecycle_state"], record["original_model"], record["format"]) == ("in_progress", "auto", "chat")
    assert record["signals"] == {"systemone:is_code": True}
    assert record["signal_values"] == {"systemone:is_code": 0.9}
    assert list(record["answers"].values()) == [{"noul": {"probability": 0.9}}]
    assert record["timestamp"] == "1970-01-12T13:46:40.000+00:00"


async def test_a_refused_request_is_recorded_and_told_too(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    verdict = await recording.send(chat("strict"), LATE)
    assert isinstance(verdict, Reply)
    (record,) = recording.records()
    assert verdict.headers["x-vsr-replay-id"] == record["id"]
    assert (record["lifecycle_state"], record["terminal_reason"]) == ("failed", "decision_unresolved")
    assert record["route_diagnostics"]["signal_errors"] == {"systemone:is_code": "timeout"}


OTHER_MODEL = '{name: other, backend_refs: [{endpoint: "http://127.0.0.1:9101/v1"}]}'
BODIES: list[tuple[str, dict[str, Any]]] = [
    ("chat", {"model": CANARY, "messages": [{"role": "user", "content": CANARY}]}),
    ("chat", {**chat(text=CANARY), "tools": [{"type": "function", "function": {"name": CANARY}}], CANARY: CANARY}),
    ("chat", {"model": "auto", "messages": CANARY}),
    ("responses", {"model": "auto", "input": CANARY, "instructions": CANARY}),
    ("messages", {"model": "auto", "system": CANARY, "messages": [{"role": "user", "content": CANARY}]}),
]


async def test_nothing_of_a_request_is_kept_unless_it_is_captured(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    for path, body in BODIES:
        await recording.send(body, path=PATHS[path])
    records = recording.records(content=True)
    assert len(records) == len(BODIES)
    assert records[-1]["original_model"] == OTHER
    assert all(record["session_id"] is None for record in records)
    assert CANARY.encode() not in on_disk(tmp_path)


async def test_what_is_captured_is_cut(tmp_path: Path) -> None:
    recording = Recording(tmp_path, OPEN)
    await recording.send(chat(text="x" * 100))
    (record,) = recording.records(content=True)
    assert (len(record["request_body"]), record["request_truncated"], record["captured"]) == (60, True, True)
    assert (record["session_id"], record["request_id"]) == (CANARY, "req-1")


async def answered(recording: Recording, status: int = 200, answer: bytes = b"{}") -> None:
    """One request, forwarded and answered."""
    verdict = await recording.send(chat())
    assert isinstance(verdict, Forward)
    assert verdict.watch is not None
    verdict.watch.sent()
    recording.now += 2.0
    verdict.watch.headers(status, {"content-type": "application/json"})
    verdict.watch.body(answer, last=True)
    verdict.watch.over(left=False)


async def test_what_became_of_a_request_is_recorded(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    await answered(recording, 200, CANARY.encode())
    (record,) = recording.records(content=True)
    assert (record["lifecycle_state"], record["response_status"], record["duration_ms"]) == ("completed", 200, 2000.0)
    assert (record["turn_index"], record["captured"], record["response_captured"]) == (1, False, False)
    assert CANARY.encode() not in on_disk(tmp_path)


async def test_an_answer_is_kept_where_that_is_wanted(tmp_path: Path) -> None:
    recording = Recording(tmp_path, OPEN)
    await answered(recording, 200, b"a" * 100)
    (record,) = recording.records(content=True)
    assert (record["response_body"], record["response_truncated"]) == ("a" * 60, True)
    assert "response_body" not in (SqliteReplays(recording.path).get(record["id"]) or {})


async def test_what_an_answer_cost_is_recorded_where_its_tokens_are_read(tmp_path: Path) -> None:
    recording = Recording(tmp_path, OPEN)
    verdict = await recording.send(chat(), text=PRICED)
    assert isinstance(verdict, Forward)
    assert verdict.watch is not None
    verdict.watch.headers(200, {})
    verdict.watch.body(b'{"usage":{"prompt_tokens":1000,"completion_tokens":100}}', last=True)
    verdict.watch.over(left=False)
    (record,) = recording.records()
    assert (record["selected_model"], record["actual_cost"], record["currency"]) == ("coder", 0.002, "USD")
    assert (record["baseline_model"], record["baseline_cost"], record["cost_savings"]) == ("general", 0.006, 0.004)


PLUGIN = "plugins: [{type: router_replay, configuration: {capture_request_body: true, max_body_bytes: 20}}]"
OWN = PLAIN.replace("modelRefs: [{model: general}]", f"modelRefs: [{{model: general}}]\n        {PLUGIN}")
OWN += "global: {services: {router_replay: {path: /r.db}}}\n"


async def test_a_decision_may_have_records_of_its_own(tmp_path: Path) -> None:
    recording = Recording(tmp_path, ReplaySettings("", 100, 0, What(enabled=False)))
    other, own = await recording.send(chat(), text=OWN), await recording.send(chat("fixed"), text=OWN)
    assert isinstance(other, Forward)
    assert isinstance(own, Forward)
    assert (other.watch, "replay_id" in other.metadata) == (None, False)
    (record,) = recording.records(content=True)
    assert (record["decision"], len(record["request_body"])) == ("all", 20)


async def test_requests_that_the_plugin_records_are_told(tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []
    recording = Recording(tmp_path)
    recording.recorder = Recorder(
        CLOSED, recording.writer, ran=lambda recipe, decision: told.append((recipe, decision))
    )
    await recording.send(chat("fixed"), text=OWN)
    await recording.send(chat(), text=OWN)
    await recording.send(chat("fixed"), text=OWN.replace("{capture_request_body: true, ", "{enabled: false, "))
    assert told == [("fixed", "all")]


async def test_tools_are_named_where_text_is_kept(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    calls = [{"id": f"c{i}", "type": "function", "function": {"name": CANARY, "arguments": "{}"}} for i in range(3)]
    turns = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None, "tool_calls": calls}]
    body = {"model": "fixed", "messages": turns}
    text = OWN.replace("max_body_bytes: 20", "max_body_bytes: 20, max_tool_trace_steps: 2")
    await recording.send(body, text=text)
    await recording.send(body, text=text.replace("capture_request_body: true", "capture_request_body: false"))
    await recording.send(body)
    plain, closed, named = recording.records(content=True)
    step = {"step": "call", "name": CANARY, "bytes": 2}
    assert named["tool_trace"] == [{**step, "call_id": "c1"}, {**step, "call_id": "c2"}]
    assert "tool_trace" not in closed
    assert "tool_trace" not in plain
    assert "tool_trace" not in (SqliteReplays(recording.path).get(named["id"]) or {})


async def test_a_decision_may_have_no_records(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    await recording.send(chat("fixed"), text=OWN.replace("{capture_request_body: true, ", "{enabled: false, "))
    await recording.send(chat(), text=OWN)
    assert [record["decision"] for record in recording.records()] == ["code"]


async def test_a_recorder_that_fails_costs_no_request(tmp_path: Path) -> None:
    recording = Recording(tmp_path)
    recording.recorder._clock = lambda: 1 / 0
    assert isinstance(await recording.send(chat()), Forward)


@pytest.mark.parametrize(
    "answer",
    [
        YES,
        LATE,
        ChoiceAnswer("a", {"a": 0.7, "b": 0.3}, 0.7),
        ScoreAnswer(1.5, (0.1, 0.3, 0.6), 0.6),
        SetAnswer(frozenset({"a"}), {"a": 0.7, "b": 0.3}, True),
        SpanAnswer((Span("PERSON", 1, 4, 0.9),), 0.95),
    ],
)
def test_an_answer_survives(answer: Answer) -> None:
    assert recorded_answer(orjson.loads(orjson.dumps(answer_record(answer)))) == answer


@pytest.mark.parametrize(
    "reading",
    [Reading(None, True, 0.5, {"": 3.0}, {"en": 0.5}), Reading(None, None, reason=UnknownReason.NO_TEXT)],
)
def test_a_reading_survives(reading: Reading) -> None:
    assert recorded_reading(orjson.loads(orjson.dumps(reading_record(reading)))) == reading


@given(st.floats(0, 1))
def test_a_probability_survives_exactly(value: float) -> None:
    assert recorded_answer(json.loads(json.dumps(answer_record(NoulAnswer(value))))) == NoulAnswer(value)


class TestRedeciding:
    async def difference(self, folder: Path, new: str, *answers: Answer, model: str = "auto") -> Difference:
        recording = Recording(folder)
        for answer in answers:
            await recording.send(chat(model), answer)
        return Redecider(plan_of(new)).difference(recording.records())

    @pytest.mark.parametrize("status", [None, 200, 500])
    async def test_how_a_backend_answered_is_not_where_a_request_went(self, tmp_path: Path, status: int | None) -> None:
        recording = Recording(tmp_path, OPEN)
        verdict = await recording.send(chat())
        assert isinstance(verdict, Forward)
        assert verdict.watch is not None
        verdict.watch.sent()
        if status is not None:
            verdict.watch.headers(status, {})
            verdict.watch.body(b"half", last=False)
        verdict.watch.over(left=False)
        (record,) = recording.records()
        assert record["terminal_reason"] is not None
        found = Redecider(plan_of()).difference([record])
        assert (found.same, found.changed) == (1, {})

    @pytest.mark.parametrize("reason", ["overloaded", "context_length_exceeded"])
    async def test_what_was_not_decided_did_not_go_elsewhere(self, tmp_path: Path, reason: str) -> None:
        recording = Recording(tmp_path)
        await recording.send(chat(), LATE)
        (record,) = recording.records()
        undecided = {**record, "terminal_reason": reason, "decision": None, "selected_model": None}
        found = Redecider(plan_of()).difference([undecided])
        assert (found.unreadable, found.compared, found.undecided.count) == (1, 0, 0)

    async def test_the_same_configuration_changes_nothing(self, tmp_path: Path) -> None:
        found = await self.difference(tmp_path, PLAIN, YES, NO, LATE)
        assert (found.same, found.compared, found.changed) == (3, 3, {})

    async def test_another_threshold(self, tmp_path: Path) -> None:
        found = await self.difference(tmp_path, PLAIN.replace("gte: 0.7", "gte: 0.95"), YES, NO, YES)
        assert found.same == 1
        (change,) = found.as_json()["changed"]
        assert (change["from"], change["to"], change["count"]) == ("code → coder", "error no_route", 2)
        assert len(change["examples"]) == 2

    async def test_another_question_needs_the_text(self, tmp_path: Path) -> None:
        found = await self.difference(tmp_path, PLAIN.replace("Is this code?", "Is it code?"), YES, NO)
        assert (found.compared, found.undecided.count, found.missing) == (0, 2, {"systemone:is_code": 2})

    async def test_a_question_that_cannot_matter_needs_nothing(self, tmp_path: Path) -> None:
        asked = "{type: systemone, name: is_code}"
        never = "{operator: NOT, conditions: [{operator: AND, conditions: []}]}"
        new = PLAIN.replace("Is this code?", "Is it code?").replace(asked, f"{asked}, {never}")
        found = await self.difference(tmp_path, new, YES)
        assert (found.compared, found.undecided.count) == (1, 0)

    async def test_a_renamed_rule_is_the_same_question(self, tmp_path: Path) -> None:
        found = await self.difference(tmp_path, PLAIN.replace("is_code", "looks_like_code"), YES, NO)
        assert found.same == 2

    async def test_models_that_are_named_or_gone(self, tmp_path: Path) -> None:
        assert (await self.difference(tmp_path, PLAIN, YES, model="general")).same == 1
        (tmp_path / "b").mkdir()
        new = PLAIN.replace("name: general", "name: gentle").replace("model: general", "model: gentle")
        (change,) = (await self.difference(tmp_path / "b", new, YES, model="general")).as_json()["changed"]
        assert change["to"] == "error model_not_found"

    async def test_a_selector_may_pick_what_was_picked(self, tmp_path: Path) -> None:
        old = "modelRefs: [{model: coder}]"
        weighted = PLAIN.replace(old, "modelRefs: [{model: coder, weight: 1}, {model: general, weight: 1}]", 1)
        assert (await self.difference(tmp_path, weighted, YES)).same == 1
        (tmp_path / "b").mkdir()
        text = weighted.replace("providers:\n  models:\n", "providers:\n  models:\n    - " + OTHER_MODEL + "\n")
        text = text.replace("[{model: coder, weight", "[{model: other, weight")
        (change,) = (await self.difference(tmp_path / "b", text, YES)).as_json()["changed"]
        assert change["to"] == "code → one of other, general"

    async def test_records_that_are_none(self, tmp_path: Path) -> None:
        found = await self.difference(tmp_path, PLAIN, YES, model="nobody knows")
        assert found.unreadable == 1
        assert Redecider(plan_of()).difference([{}, {"id": "a", "format": 3, "original_model": None}]).unreadable == 2
