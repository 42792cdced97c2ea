"""One request as spans: what took how long on its way to a decision.

Attributes are few and fixed: names of the configuration, numbers and closed sets. No text, and nothing a client sent.

Sources: `reference.md` 7.7.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol, TypeVar

from router.acting.plugins import plugins
from router.acting.target import Target
from router.config.families import family_of
from router.config.guards import GuardRule
from router.config.heuristics import HeuristicRule
from router.config.plan import Plan, QuestionRule, Recipe
from router.config.read_headers import reads_answers
from router.explaining.answer_spans import AnswerSpans
from router.explaining.notes import Notes
from router.explaining.watching import Seen
from router.observe.tracing import Attribute, SpanRecord
from router.wire.http import Head

_PREFIX: Final = "semantic_router"
_NS: Final = 1_000_000_000

Rule = TypeVar("Rule", HeuristicRule, QuestionRule | GuardRule)


class SpanSink(Protocol):
    """Where spans go."""

    def record(self, span: SpanRecord, headers: Mapping[str, str]) -> object:
        """Take a span with its children, and the headers that may name its parent. Returns what `follow` needs."""

    def follow(self, parent: object, span: SpanRecord) -> None:
        """Take a child that began when its parent, for which `record` returned `parent`, was over."""


class Tracer:
    """Makes spans of every request that it is shown. A watcher of the pipeline, whose times are of `clock`."""

    def __init__(
        self,
        sink: SpanSink,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], int] = time.time_ns,
    ) -> None:
        self._sink = sink
        self._clock = clock
        self._wall = wall

    def seen(self, plan: Plan, head: Head, body: bytes, notes: Notes) -> Seen:
        """Hand on the spans of a decided request, and later those of its answer. The client is told nothing."""
        origin = self._wall() - int(self._clock() * _NS)
        parent = self._sink.record(request_span(plan, notes, origin), head.headers)
        if notes.code is not None or not isinstance(notes.target, Target) or not reads_answers(plan):
            return Seen({})
        return Seen({}, self._answer(parent, _chosen(notes), origin))

    def _answer(self, parent: object, chosen: Mapping[str, Attribute], origin: int) -> AnswerSpans:
        kept = {name: value for name, value in chosen.items() if name in {"recipe", "decision", "model"}}

        def tell(
            name: str, start: float, end: float, attributes: Mapping[str, Attribute], *, error: str | None = None
        ) -> None:
            bounds = origin + int(start * _NS), origin + int(end * _NS)
            self._sink.follow(parent, _span(name, *bounds, {**kept, **attributes}, error=error))

        return AnswerSpans(tell, self._clock)


def request_span(plan: Plan, notes: Notes, origin: int) -> SpanRecord:
    """The spans of one request. `origin` is when the notes' clock showed zero, in nanoseconds since the epoch."""

    def at(seconds: float) -> int:
        return origin + int(seconds * _NS)

    children: list[SpanRecord] = []
    if notes.asked_at or notes.computed_at:
        children.append(_signals(plan, notes, at))
    if notes.answered_at:
        matched = len(notes.outcome.matched_rules) if notes.outcome is not None else 0
        children.append(
            _span("decision.evaluation", at(notes.answered_at), at(notes.decided_at), {"signals.matched": matched})
        )
    chosen = _chosen(notes)
    settled = notes.settled_at or notes.ended
    decided = at(notes.decided_at or settled)
    if notes.target is not None:
        children.append(_span("routing.decision", decided, at(settled), chosen))
    if "model" in chosen:
        children.append(_span("backend.selection", decided, at(settled), chosen))
    if notes.target is not None and (ran := plugins(notes.target)):
        children.append(_span("plugin.execution", at(settled), at(notes.ended), {"plugins": ",".join(ran)}))
    return _span(
        "request.received",
        at(notes.started),
        at(notes.ended),
        {**chosen, **_received(plan, notes)},
        tuple(children),
        error=notes.code.value if notes.code is not None else None,
    )


def _received(plan: Plan, notes: Notes) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {"revision": plan.revision}
    if notes.request is not None:
        found |= {"format": notes.request.format.value, "streaming": notes.request.stream}
    if notes.code is not None:
        found["error"] = notes.code.value
    return found


def _chosen(notes: Notes) -> dict[str, Attribute]:
    told = notes.target.told if notes.target is not None else {}
    found: dict[str, Attribute] = {
        name: told[name] for name in ("recipe", "decision", "model", "algorithm") if name in told
    }
    found |= {name.replace("_", ".", 1): value for name, value in told.items() if name.startswith("retention_")}
    if notes.outcome is not None and notes.outcome.confidence is not None:
        found["confidence"] = notes.outcome.confidence
    return found


def _signals(plan: Plan, notes: Notes, at: Callable[[float], int]) -> SpanRecord:
    """From the first rule that is computed, or the first question, to the last answer."""
    recipe = plan.recipes[notes.recipe] if notes.recipe is not None else None
    attributes: dict[str, Attribute] = {"calls": len(notes.calls), "signals": len(notes.readings)}
    if notes.waited is not None:
        attributes |= {
            "overload.waited_ms": round(notes.waited.seconds * 1000, 3),
            "overload.outcome": notes.waited.ended,
        }
    computed = notes.computed_at + notes.computing
    families: list[SpanRecord] = []
    if recipe is not None and notes.computed_at:
        families += _computed(recipe, notes, at(notes.computed_at), at(computed))
    if recipe is not None and notes.asked_at:
        families += _asked(recipe, notes, at)
    end = notes.answered_at if notes.asked_at else computed
    return _span("signal.evaluation", at(notes.computed_at or notes.asked_at), at(end), attributes, tuple(families))


def _computed(recipe: Recipe, notes: Notes, start: int, end: int) -> Iterator[SpanRecord]:
    """A span for each family of rules that ask no model. The text is read once for all, so all are as long as that."""
    for family, rules in _by_family(recipe.heuristics).items():
        yield _span(f"signal.{family}", start, end, _came_to(rules, notes))


def _asked(recipe: Recipe, notes: Notes, at: Callable[[float], int]) -> Iterator[SpanRecord]:
    """A span for each family of rules that ask a model, as long as the longest call that was made for it."""
    seconds = notes.longest_calls()
    rules: Sequence[QuestionRule | GuardRule] = (*recipe.questions, *recipe.guards)
    for family, asked in _by_family(rules).items():
        attributes = _came_to(asked, notes) | {
            "deployments": ",".join(dict.fromkeys(rule.deployment for rule in asked))
        }
        longest = max((seconds.get(rule.deployment, 0.0) for rule in asked), default=0.0)
        end = min(notes.asked_at + longest, notes.answered_at)
        yield _span(f"signal.{family}", at(notes.asked_at), at(end), attributes)


def _by_family(rules: Iterable[Rule]) -> Mapping[str, list[Rule]]:
    found: dict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        found[family_of(rule.name)].append(rule)
    return found


def _came_to(rules: Sequence[HeuristicRule | QuestionRule | GuardRule], notes: Notes) -> dict[str, Attribute]:
    readings = [notes.readings[rule.name] for rule in rules if rule.name in notes.readings]
    attributes: dict[str, Attribute] = {
        "signals": len(rules),
        "signals.matched": sum(reading.matched is True and not reading.by_policy for reading in readings),
        "signals.unknown": sum(reading.matched is None for reading in readings),
    }
    if closed := sum(reading.matched is True and reading.by_policy for reading in readings):
        attributes["signals.failed_closed"] = closed
    return attributes


def _span(
    name: str,
    start: int,
    end: int,
    attributes: Mapping[str, Attribute],
    children: tuple[SpanRecord, ...] = (),
    *,
    error: str | None = None,
) -> SpanRecord:
    named = {f"{_PREFIX}.{key}": value for key, value in attributes.items()}
    return SpanRecord(f"{_PREFIX}.{name}", start, max(start, end), named, children, error)
