"""An explanation as JSON, by the names of the management API's preview.

Sources: `reference.md` 7.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from router.asking.report import CallReport
from router.config.actions import Actions
from router.config.families import PROJECTION, written_name
from router.config.plan import Plan
from router.deciding.kleene import Truth
from router.deciding.trace import DecisionTrace, TraceNode
from router.explaining.candidates import candidates_json
from router.explaining.explanation import Explanation
from router.explaining.facts import RuleFact
from router.explaining.ranking import Because
from router.explaining.scans import scan_json
from router.explaining.waits import wait_json
from router.questions import (
    Answer,
    ChoiceAnswer,
    NoulAnswer,
    Predicate,
    ScoreAnswer,
    SetAnswer,
    SimilarityAnswer,
    SpanAnswer,
    Unknown,
)
from router.wire.errors import ErrorCode

_UNAVAILABLE: Final = frozenset({ErrorCode.NO_ELIGIBLE_MODEL})

_BECAUSE: Final[Mapping[Because, str]] = {
    Because.ONLY_MATCH: "nothing else matched",
    Because.CATCH_ALL_LAST: "all others that matched are catch-alls, which rank last",
    Because.TIER: "its tier comes before that of the next",
    Because.PRIORITY: "its priority is higher than that of the next",
    Because.CONFIDENCE: "its confidence is higher than that of the next",
    Because.NAME: "its name comes before that of the next, with which it is level",
    Because.NO_MATCH: "no decision matched",
    Because.UNRESOLVED: "an unknown answer could still change which decision is selected",
}


def because(explanation: Explanation) -> str:
    """In words: why the selected decision was selected, or why none was."""
    if explanation.recipe is None:
        return "the client named a provider model itself" if explanation.model else "no recipe has a say"
    return _BECAUSE[explanation.choice.because]


def status(explanation: Explanation) -> str:
    """`selected`; `fallback` to the default model; `unavailable`: no candidate of the client's format; or `failed`."""
    if explanation.code is not None:
        return "unavailable" if explanation.code in _UNAVAILABLE else "failed"
    return "fallback" if explanation.recipe is not None and explanation.decision is None else "selected"


def as_json(explanation: Explanation, plan: Plan, *, trace: bool, text: str | None = None) -> dict[str, Any]:
    """The preview. `trace` adds every decision's tree; `text`, the request's own, is returned only when given."""
    decision = explanation.decision
    otherwise = explanation.choice.otherwise
    body: dict[str, Any] = {
        "original_text": text,
        "requested_model": explanation.requested_model,
        "recipe": explanation.recipe,
        "decision_result": _decision_result(explanation),
        "routing_decision": decision.name if decision else None,
        "recommended_models": [ref.model for ref in decision.model_refs] if decision else [],
        "selected_model": explanation.model,
        "response_path": _path(explanation),
        "selection_status": status(explanation),
        "selection_method": explanation.algorithm,
        "selection_reason": because(explanation),
        "selection": candidates_json(explanation.contestants) if explanation.contestants else None,
        "selection_otherwise": asdict(otherwise) if otherwise else None,
        "ranking": [asdict(one) for one in explanation.choice.ranked],
        "emits": _emits(decision.actions) if decision else [],
        "error": explanation.code.value if explanation.code else None,
        "signals": [_signal(fact) for fact in explanation.rules],
        "signal_confidences": _confidences(explanation),
        "signal_values": _values(explanation),
        "signal_errors": {fact.key: f"decision_{fact.reason}" for fact in explanation.rules if fact.reason},
        "scan_coverage": {fact.key: fact.coverage for fact in explanation.rules},
        "projections": _projections(explanation),
        "metrics": _metrics(explanation),
        "revision": plan.revision,
    }
    if trace:
        body["eval_trace"] = [decision_trace(each) for each in explanation.decisions]
    return body


def answer_json(answer: Answer | None) -> dict[str, Any] | None:
    """An answer as numbers and names; None when there is none. Spans are places, never what stands there."""
    found: dict[str, Any] | None = None
    match answer:
        case None | Unknown():
            pass
        case NoulAnswer(probability):
            found = {"probability": probability}
        case ChoiceAnswer(choice, probabilities, confidence):
            found = {"choice": choice, "probabilities": dict(probabilities), "confidence": confidence}
        case ScoreAnswer(score, levels, confidence):
            found = {"score": score, "probabilities": list(levels), "confidence": confidence}
        case SetAnswer(selected, probabilities, composed):
            found = {"selected": sorted(selected), "probabilities": dict(probabilities), "composed": composed}
        case SpanAnswer(spans, word):
            found = {"spans": [asdict(span) for span in spans], "word_probability": word}
        case SimilarityAnswer(similarities):
            found = {"best": nearest(answer), "similarities": list(similarities)}
    return found


def nearest(answer: SimilarityAnswer) -> int:
    """The place, from 0, of the candidate that the text is most like; the first of equals."""
    return max(range(len(answer.similarities)), key=answer.similarities.__getitem__)


def bounds(predicate: Predicate | None) -> dict[str, float]:
    """The bounds that a predicate sets."""
    return {key: value for key, value in asdict(predicate).items() if value is not None} if predicate else {}


def decision_trace(trace: DecisionTrace) -> dict[str, Any]:
    """One decision of the evaluation trace."""
    return {
        "decision_name": trace.decision,
        "state": trace.truth.value,
        "matched": trace.matched,
        "confidence": trace.confidence,
        "on_unknown": trace.policy,
        "fails_request": trace.fails,
        "selected": trace.selected,
        "root_trace": _node(trace.root),
    }


def rule_name(node: TraceNode) -> str:
    """What the rule, or projection output, of a condition is called in the document."""
    name = node.name or ""
    return name if node.node == PROJECTION else written_name(name)


def _node(node: TraceNode) -> dict[str, Any]:
    return {
        "node_type": "leaf" if node.name is not None else node.node,
        "signal_type": node.node if node.name is not None else None,
        "signal_name": None if node.name is None else rule_name(node),
        "label": node.label,
        "state": node.truth.value,
        "matched": node.truth is Truth.TRUE,
        "value": node.value,
        "confidence": node.confidence,
        "confidence_scored": node.scored,
        "on_error": node.on_error,
        "signal_error": f"decision_{node.reason}" if node.reason else None,
        "children": [_node(child) for child in node.children],
    }


def _emits(actions: Actions) -> list[dict[str, Any]]:
    """The directives of a decision, as far as they say something."""
    if actions.retention is None:
        return []
    written = {key: value for key, value in asdict(actions.retention).items() if value is not None}
    return [{"kind": "retention", "retention": written}]


def _path(explanation: Explanation) -> str:
    if explanation.code is not None:
        return "error"
    return "upstream" if explanation.model is not None else "fast_response"


def _decision_result(explanation: Explanation) -> dict[str, Any]:
    facts = explanation.rules
    return {
        "decision_name": explanation.decision.name if explanation.decision else None,
        "confidence": explanation.outcome.confidence if explanation.outcome else None,
        "algorithm": explanation.algorithm,
        "used_signals": [fact.key for fact in facts],
        "matched_signals": [fact.key for fact in facts if fact.effective is True],
        "unmatched_signals": [fact.key for fact in facts if fact.effective is False],
        "unknown_signals": [fact.key for fact in facts if fact.effective is None],
        "applied_unknown_policy": list(explanation.outcome.applied) if explanation.outcome else [],
    }


def _signal(fact: RuleFact) -> dict[str, Any]:
    reading = fact.reading
    return {
        "key": fact.key,
        "type": fact.family,
        "name": fact.name,
        "deployment": fact.deployment,
        "question": {"id": fact.question, "type": fact.type, "preset": fact.preset},
        "state": fact.part,
        "bytes": fact.part_bytes,
        "bytes_read": fact.read_bytes,
        "coverage": fact.coverage,
        "scan": scan_json(fact.guard),
        "answer": answer_json(fact.answer),
        "values": dict(reading.values),
        "predicate": bounds(fact.predicate),
        "matched": reading.matched,
        "effective": fact.effective,
        "confidence": reading.confidence,
        "labels": dict(reading.labels),
        "reason": fact.reason,
        "call_ms": None if fact.seconds is None else _ms(fact.seconds),
    }


def _confidences(explanation: Explanation) -> dict[str, float]:
    found: dict[str, float] = {}
    for fact in explanation.rules:
        if fact.reading.confidence is not None:
            found[fact.key] = fact.reading.confidence
        found.update({f"{fact.key}:{label}": value for label, value in fact.reading.labels.items()})
    return found


def _values(explanation: Explanation) -> dict[str, float]:
    return {
        f"{fact.key}:{label}" if label else fact.key: value
        for fact in explanation.rules
        for label, value in fact.reading.values.items()
    }


def _projections(explanation: Explanation) -> dict[str, Any]:
    projected = explanation.projected
    return {
        "scores": {
            name: {"value": score.low if score.known else None, "low": score.low, "high": score.high}
            for name, score in projected.scores.items()
        },
        "outputs": {
            name: {"state": verdict.truth.value, "confidence": verdict.confidence, "score": explanation.bands[name]}
            for name, verdict in projected.outputs.items()
        },
    }


def _metrics(explanation: Explanation) -> dict[str, Any]:
    times = explanation.times
    return {
        "total_ms": _ms(times.total),
        "computing_ms": _ms(times.computing),
        "signals_ms": _ms(times.signals),
        "decision_ms": _ms(times.decision),
        "calls": [_call(call) for call in explanation.calls],
        "overload_wait": wait_json(explanation.waited),
    }


def _call(call: CallReport) -> dict[str, Any]:
    return {
        "deployment": call.deployment,
        "outcome": call.outcome.value,
        "ms": _ms(call.seconds),
        "states": call.states,
        "questions": call.questions,
        "sent": call.sent,
    }


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
