"""A clock and a decision model that are made up, to drive scans with."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from router.config.sizes import ScanWindow
from router.questions import Answer, NoulAnswer, Predicate, QuestionType, UnknownReason
from router.scan.machine import Ask, End, Lane, Refuses, ScanMachine
from router.scan.pace import DeploymentPace
from router.scan.reading import Input
from router.scan.rules import OnUnscanned, WatchedQuestion, WatchedRule
from router.scan.windows import RandomBelow
from router.wire.longtext import Words

Reply = Mapping[str, Answer] | UnknownReason
Model = Callable[[Ask], tuple[float, Reply]]
"""What a call takes in seconds, and what it comes to."""

GUARD = "guard"


def guard(
    key: str = "attack",
    at: float = 0.5,
    *,
    on_unscanned: OnUnscanned = "best_effort",
    min_coverage: float | None = None,
    whole: bool = False,
) -> WatchedRule:
    return WatchedRule(key, Predicate(gte=at), None, at, on_unscanned, min_coverage, whole)


def noul(*rules: WatchedRule, key: str = "q0") -> WatchedQuestion:
    return WatchedQuestion(key, QuestionType.NOUL, rules or (guard(),))


def given(text: Words, *questions: WatchedQuestion, name: str = "user", normalise: bool = False) -> Input:
    return Input(name, GUARD, text, questions or (noul(),), normalise)


def always(rule: str, found: Mapping[str, Answer]) -> bool:
    del rule, found
    return True


def never(rule: str, found: Mapping[str, Answer]) -> bool:
    del rule, found
    return False


def zero(below: int) -> int:
    del below
    return 0


def harmless(_: Ask) -> tuple[float, Reply]:
    return 1.0, {"q0": NoulAnswer(0.01)}


def looking_for(needle: str, chance: float = 0.99, otherwise: float = 0.01, seconds: float = 1.0) -> Model:
    """A model that is sure where it sees the needle whole."""
    return lambda ask: (
        seconds,
        {key: NoulAnswer(chance if needle in ask.text else otherwise) for key in ask.questions},
    )


@dataclass
class Drive:
    """One request's scans, driven to their end."""

    machine: ScanMachine
    model: Model
    asks: list[Ask] = field(default_factory=list)
    most_in_flight: int = 0
    now: float = 0.0
    deadline: float = 1e9

    def run(self) -> Drive:
        waiting: list[tuple[float, int, Reply]] = []
        self._sent(self.machine.start(self.now), waiting)
        while self.machine.ended is None:
            assert waiting, "the scan waits for nothing"
            if waiting[0][0] > self.deadline:
                self.now = self.deadline
                self.machine.expire(self.now)
                break
            self.now, call, reply = heapq.heappop(waiting)
            if isinstance(reply, UnknownReason):
                more = self.machine.failed(call, reply, self.now)
            else:
                more = self.machine.answered(call, reply, self.now)
            self._sent(more, waiting)
        assert self.machine.ended is not None
        for _, call, reply in waiting:
            late = {} if isinstance(reply, UnknownReason) else reply
            assert self.machine.answered(call, late, self.now) == []
        return self

    def _sent(self, asks: Iterable[Ask], waiting: list[tuple[float, int, Reply]]) -> None:
        for ask in asks:
            assert self.machine.ended is None
            self.asks.append(ask)
            seconds, reply = self.model(ask)
            heapq.heappush(waiting, (self.now + seconds, ask.id, reply))
        self.most_in_flight = max(self.most_in_flight, len(self.machine.in_flight))

    @property
    def ended(self) -> End | None:
        return self.machine.ended

    @property
    def texts(self) -> list[str]:
        return [ask.text for ask in self.asks]


def drive(
    inputs: Input | Sequence[Input],
    sizes: ScanWindow,
    model: Model = harmless,
    *,
    refuses: Refuses = never,
    deadline: float = 1e9,
    randbelow: RandomBelow = zero,
    pace: DeploymentPace | None = None,
) -> Drive:
    inputs = [inputs] if isinstance(inputs, Input) else inputs
    lanes = {name: Lane(sizes, pace or DeploymentPace()) for name in {each.deployment for each in inputs}}
    machine = ScanMachine(inputs, lanes, deadline, refuses, randbelow)
    return Drive(machine, model, deadline=deadline).run()
