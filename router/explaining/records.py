"""What is kept of a request for later: how it was decided, and of its text nothing unless the configuration says so.

Building a record is left to the thread that writes it; on the request's own way only a `Sketch` is taken.

Sources: `reference.md` 7.5 (replay records).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from router.acting.target import Target
from router.asking.report import WaitReport
from router.config.actions import Recording
from router.config.candidates import SESSION_HEADERS
from router.config.families import family_of, written_name
from router.config.plan import Decision, Plan
from router.config.services import REQUEST_ID, ReplaySettings
from router.deciding.engine import Outcome
from router.deciding.guarded import GuardResult
from router.explaining.answers import answer_record, guard_record, reading_record
from router.explaining.costs import rates_of
from router.explaining.endings import Ended, EndingWatch, State, ending
from router.explaining.facts import rule_ids, verdict_id
from router.explaining.notes import Notes
from router.explaining.routes import projection_trace, route_diagnostics
from router.explaining.scans import coverages
from router.explaining.watching import Seen
from router.observe.replay import Ending, ReplayWriter, Row
from router.questions import Answer
from router.signals.reading import Reading
from router.wire.errors import ErrorCode
from router.wire.http import Head
from router.wire.request import LlmRequest
from router.wire.tool_steps import ToolStep, tool_steps

OTHER: Final = "(other)"
"""Stands for a model's name that no configuration knows: what a client writes there may be anything."""

PLUGIN: Final = "router_replay"
"""What a decision has that says how its requests are recorded."""

_LONGEST_ID: Final = 128
_MOST_KNOWN: Final = 64


@dataclass(frozen=True, slots=True)
class Sketch:
    """One decided request without its text, but for `body`, which is what may be captured of it."""

    id: str
    at: float
    plan: Plan
    recipe: str | None
    original_model: str | None
    format: str | None
    streaming: bool
    answers: Mapping[str, Answer]
    readings: Mapping[str, Reading]
    outcome: Outcome | None
    decision: Decision | None
    told: Mapping[str, str]
    code: ErrorCode | None
    seconds: float
    request_id: str | None
    session_id: str | None
    body: bytes | None
    truncated: bool
    turn: int | None
    state: State
    most: int | None
    steps: tuple[ToolStep, ...]
    waited: WaitReport | None
    guards: Mapping[str, GuardResult]


class Recorder:
    """Records the requests that it is shown, as their decisions say, and what becomes of them. A watcher."""

    def __init__(
        self,
        settings: ReplaySettings,
        writer: ReplayWriter[Sketch | Ended],
        *,
        clock: Callable[[], float] = time.time,
        ran: Callable[[str, str], None] = lambda recipe, decision: None,
    ) -> None:
        """`ran` is told of each request that is recorded because its decision has the plugin `router_replay`."""
        self._settings = settings
        self._ran = ran
        self._writer = writer
        self._clock = clock

    def seen(self, plan: Plan, head: Head, body: bytes, notes: Notes) -> Mapping[str, str] | Seen:
        """Take a sketch of a decided request; its id is told to the client when it is kept."""
        recording = self._recording(plan, notes)
        if not recording.enabled:
            return {}
        sketch = self._sketch(plan, head, body, notes, recording)
        if not self._writer.put(sketch):
            return {}
        if sketch.recipe is not None and (rule := sketch.decision) is not None and rule.actions.recording is not None:
            self._ran(sketch.recipe, rule.name)
        told = {"replay_id": sketch.id}
        if sketch.state is not State.IN_PROGRESS:
            return told
        target = notes.target
        rates = rates_of(plan, target.model, sketch.decision) if isinstance(target, Target) else None
        return Seen(told, EndingWatch(sketch.id, sketch.at, recording, self._writer.put, self._clock, rates))

    def _recording(self, plan: Plan, notes: Notes) -> Recording:
        """What is recorded of this request: as its decision says, and no text where that keeps nothing of the turn."""
        decision = _decision(plan, notes)
        if decision is None:
            return self._settings.every
        found = decision.actions.recording or self._settings.every
        return replace(found, request_body=False, response_body=False) if decision.actions.drops else found

    def _sketch(self, plan: Plan, head: Head, body: bytes, notes: Notes, recording: Recording) -> Sketch:
        settings, request = self._settings, notes.request
        # A coded body would be of no use to a reader, and inflating it is not worth a request's time.
        capture = recording.request_body and "content-encoding" not in head.headers
        personal = settings.capture_personal_data
        return Sketch(
            id=secrets.token_hex(12),
            at=self._clock(),
            plan=plan,
            recipe=notes.recipe,
            original_model=_public(plan, request.model) if request is not None else None,
            format=request.format.value if request is not None else None,
            streaming=request is not None and request.stream,
            answers=notes.answers,
            readings=notes.readings,
            outcome=notes.outcome,
            decision=_decision(plan, notes),
            told=notes.target.told if notes.target is not None else {},
            code=notes.code,
            seconds=max(notes.ended - notes.started, 0.0),
            request_id=_short(head.headers.get(REQUEST_ID)) if personal else None,
            session_id=_session(head) if personal else None,
            body=body[: recording.max_body_bytes] if capture else None,
            truncated=capture and len(body) > recording.max_body_bytes,
            turn=sum(turn.role == "user" for turn in request.turns) if request is not None else None,
            state=_state(notes),
            most=recording.max_records,
            steps=_steps(notes.request, recording),
            waited=notes.waited,
            guards=notes.guards,
        )


class Encoder:
    """Turns sketches into rows. To be used from one thread."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], dict[str, str]] = {}

    def __call__(self, item: Sketch | Ended) -> Row | Ending:
        """The record of a sketch, or what became of its request."""
        return self._row(item) if isinstance(item, Sketch) else ending(item)

    def _row(self, sketch: Sketch) -> Row:
        told, decision = sketch.told, sketch.decision
        keys = {
            "recipe": sketch.recipe,
            "decision": decision.name if decision is not None else None,
            "model": told.get("model"),
            "error": sketch.code.value if sketch.code is not None else None,
            "session_id": sketch.session_id,
        }
        summary = {
            "id": sketch.id,
            "timestamp": datetime.fromtimestamp(sketch.at, UTC).isoformat(timespec="milliseconds"),
            "revision": sketch.plan.revision,
            "request_id": sketch.request_id,
            "session_id": sketch.session_id,
            "recipe": keys["recipe"],
            "decision": keys["decision"],
            "decision_priority": decision.priority if decision is not None else None,
            "original_model": sketch.original_model,
            "selected_model": keys["model"],
            "confidence_score": sketch.outcome.confidence if sketch.outcome is not None else None,
            "selection_method": told.get("algorithm"),
            "format": sketch.format,
            "streaming": sketch.streaming,
            "turn_index": sketch.turn,
            "lifecycle_state": sketch.state.value,
            "terminal_reason": keys["error"],
            "decision_ms": round(sketch.seconds * 1000, 3),
            "from_cache": False,
            "captured": sketch.body is not None,
            "request_truncated": sketch.truncated,
        }
        trace = orjson.dumps([_step(step) for step in sketch.steps]) if sketch.steps else None
        return Row(sketch.id, sketch.at, keys, summary, self._detail(sketch), sketch.body, sketch.most, trace)

    def _detail(self, sketch: Sketch) -> dict[str, Any]:
        outcome, readings = sketch.outcome, sketch.readings
        ids = self._rule_ids(sketch.plan, sketch.recipe)
        answers: dict[str, Any] = {}
        guards = sketch.plan.recipes[sketch.recipe].guards if sketch.recipe is not None else ()
        verdicts = {rule.name: verdict_id(rule) for rule in guards}
        for name, identity in ids.items():
            if name in sketch.guards:
                kept = guard_record(sketch.guards[name], verdicts[name])
                # Rules that make something else of the same answers are recorded with them.
                kept["verdicts"] |= answers.get(identity, {}).get("verdicts", {})
                answers[identity] = kept
            elif name in sketch.answers:
                answers[identity] = answer_record(sketch.answers[name])
            elif name in readings:
                answers[identity] = {"computed": reading_record(readings[name])}
        values, confidences = {}, {}
        for name, reading in readings.items():
            key = _key(name)
            values.update({f"{key}:{label}" if label else key: value for label, value in reading.values.items()})
            if reading.confidence is not None:
                confidences[key] = reading.confidence
        return {
            "signals": {_key(name): reading.matched for name, reading in readings.items()},
            "signal_values": values,
            "signal_confidences": confidences,
            "projection_scores": {name: list(score) for name, score in outcome.projected.scores.items()}
            if outcome is not None
            else {},
            "projections": {name: verdict.truth for name, verdict in outcome.projected.outputs.items()}
            if outcome is not None
            else {},
            "projection_trace": projection_trace(sketch.plan, sketch.recipe, outcome),
            "answers": answers,
            "scan_coverage": coverages(sketch.guards),
            "route_diagnostics": route_diagnostics(readings, outcome, sketch.waited),
        }

    def _rule_ids(self, plan: Plan, recipe: str | None) -> dict[str, str]:
        if recipe is None:
            return {}
        found = self._ids.get((plan.revision, recipe))
        if found is None:
            if len(self._ids) >= _MOST_KNOWN:
                self._ids.clear()
            found = self._ids[plan.revision, recipe] = rule_ids(plan, plan.recipes[recipe])
        return found


def _decision(plan: Plan, notes: Notes) -> Decision | None:
    """What was selected, also where no request could change that, so that nothing was decided."""
    if notes.outcome is not None:
        return notes.outcome.selected
    name = notes.target.decision if notes.target is not None else None
    if notes.recipe is None or name is None:
        return None
    return next(decision for decision in plan.recipes[notes.recipe].decisions if decision.name == name)


def _steps(request: LlmRequest | None, recording: Recording) -> tuple[ToolStep, ...]:
    """What is named of the request's tools: names are the client's text."""
    wanted = request is not None and recording.request_body and recording.tool_steps > 0
    return tool_steps(request, recording.tool_steps) if request is not None and wanted else ()


def _step(step: ToolStep) -> dict[str, Any]:
    kind = "result" if step.result else "call"
    return {"step": kind, "name": step.name, "call_id": step.call_id, "bytes": step.bytes}


def _state(notes: Notes) -> State:
    """Where a request is once it is decided: only a backend's answer is still to come."""
    if notes.code is not None:
        return State.FAILED
    return State.IN_PROGRESS if isinstance(notes.target, Target) else State.COMPLETED


def _public(plan: Plan, model: str | None) -> str | None:
    return model if model is None or model in plan.entrypoints or model in plan.models else OTHER


def _key(name: str) -> str:
    return f"{family_of(name)}:{written_name(name)}"


def _session(head: Head) -> str | None:
    return next((_short(head.headers[name]) for name in SESSION_HEADERS if name in head.headers), None)


def _short(value: str | None) -> str | None:
    return value[:_LONGEST_ID] if value else None
