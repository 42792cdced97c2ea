"""The whole-input scans of one request, as a machine without input and output.

Whoever drives it tells it what happens and when, and gets back what to send:

1. `start(now)` gives the first windows. Each `Ask` is one call to one deployment.
2. `answered` and `failed` tell what became of a call; both give the windows to send next.
3. `overloaded` tells that a call found no room and is being asked again, `freed` that its model answers again. What the
   deadline finds still waiting was not read for want of room.
4. `reconsider(now)` tells that something else about the request became known; `expire(now)` that time is up.
5. When `ended` is set nothing is sent any more, whatever is told; what is still in flight is of no interest.
   `outcomes` then says what every rule comes to.

Nothing here waits, reads a clock or draws a random number by itself.

Sources: "Long inputs" (Guard rules read the whole input), `rulings.md` 11, 12, 12a, 12d.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import NamedTuple

from router.config.sizes import ScanWindow
from router.questions import Answer, Unknown, UnknownReason
from router.scan.evidence import NOTHING, Found, valid
from router.scan.pace import Cost, DeploymentPace, Shared
from router.scan.reading import Input, InputScan
from router.scan.rules import Outcome
from router.scan.runs import Runs
from router.scan.units import Part
from router.scan.windows import RandomBelow

Refuses = Callable[[str, Mapping[str, Answer]], bool]
"""Whether a rule that has just matched settles that the request is refused, given what all matched rules found."""


class End(StrEnum):
    """Why a scan is over."""

    READ = "read"
    """Everything is read, or nothing is left to find out."""
    REFUSED = "refused"
    """A match settled that the request is refused."""
    DEADLINE = "deadline"


@dataclass(frozen=True, slots=True)
class Lane:
    """A deployment that windows go to: their sizes, and the pace that all requests share."""

    sizes: ScanWindow
    pace: DeploymentPace


@dataclass(frozen=True, slots=True)
class Ask:
    """A call to make: these questions, by key, about this text.

    `alone`: the text is a whole input, which may travel with other questions about it. `twin`: it is a normalised text.
    """

    id: int
    deployment: str
    input: str
    text: str
    questions: tuple[str, ...]
    alone: bool
    twin: bool


class _Flight(NamedTuple):
    scan: InputScan
    part: Part
    length: int
    asked: tuple[int, ...]
    at: float
    began: float


class _Lane:
    """A lane in use by one request."""

    __slots__ = ("busy", "lane", "scans", "shared")

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.shared = Shared()
        self.busy = 0
        self.scans: list[InputScan] = []


class ScanMachine:
    """The scans of one request."""

    def __init__(
        self,
        inputs: Sequence[Input],
        lanes: Mapping[str, Lane],
        deadline: float,
        refuses: Refuses,
        randbelow: RandomBelow,
    ) -> None:
        """`deadline` is on the clock of the `now` that events carry. `lanes` holds every deployment of `inputs`."""
        self.ended: End | None = None
        self.refused_by: str | None = None
        self._deadline = deadline
        self._refuses = refuses
        self._lanes = {name: _Lane(lane) for name, lane in lanes.items()}
        self._scans: list[InputScan] = []
        self._flights: dict[int, _Flight] = {}
        self._no_room: set[int] = set()
        self._ids = count()
        self._matched: list[tuple[str, InputScan, int]] = []
        for given in inputs:
            lane = self._lanes[given.deployment]
            scan = InputScan(given, lane.lane.sizes, randbelow)
            lane.scans.append(scan)
            self._scans.append(scan)

    # Events.

    def start(self, now: float) -> list[Ask]:
        """The first windows to send."""
        return self._go_on(now)

    def answered(self, call: int, answers: Mapping[str, Answer], now: float, *, timed: bool = True) -> list[Ask]:
        """A call was answered. A question that `answers` lacks, or has as Unknown, was not read in this window.

        Not `timed`: its time says nothing of how fast windows are read, because the answers were known before.
        """
        flight = self._landed(call, now)
        if flight is None:
            return []
        scan, size = flight.scan, flight.part.size
        found = {number: self._found(scan, number, answers) for number in flight.asked}
        if timed and any(not isinstance(each, UnknownReason) for each in found.values()):
            scan.pace.read(size, flight.at, now)
            if not scan.waited:
                lane = self._lanes[scan.given.deployment]
                lane.lane.pace.learn(size, lane.shared.change(0, now) - flight.began)
        self._count(scan, flight.part, flight.length, found)
        if self.ended is None:
            self._keep_up(scan, now)
        return self._go_on(now)

    def failed(self, call: int, reason: UnknownReason, now: float) -> list[Ask]:
        """A call came to nothing."""
        flight = self._landed(call, now)
        if flight is None:
            return []
        self._lose(flight, reason)
        return self._go_on(now)

    def overloaded(self, call: int) -> None:
        """A call found no room and waits for it: its scan's time says nothing of how fast the model reads."""
        if call in self._flights:
            self._flights[call].scan.waited = True
            self._no_room.add(call)

    def freed(self, deployment: str, now: float) -> None:
        """The model answers again: scans that waited for it judge their pace from here on."""
        for scan in self._lanes[deployment].scans:
            if scan.waited:
                scan.pace.restart(now)

    def reconsider(self, now: float) -> list[Ask]:
        """Other rules became known: a match may refuse now that did not before."""
        self._check(rule for rule, _, _ in self._matched)
        return self._go_on(now)

    def expire(self, now: float) -> None:
        """Time is up, if it is."""
        if self.ended is None and now >= self._deadline:
            for call in self._no_room:
                self._lose(self._flights[call], UnknownReason.OVERLOADED)
            self.ended = End.DEADLINE

    def stop(self) -> None:
        """The request is refused, whatever the scans would find."""
        self.ended = self.ended or End.REFUSED

    # What there is to know.

    @property
    def in_flight(self) -> tuple[int, ...]:
        """The calls without an answer."""
        return tuple(self._flights)

    @property
    def evidence(self) -> dict[str, Answer]:
        """What the rules that a window has decided found, by key."""
        found = ((rule, scan.questions[number].evidence.answer) for rule, scan, number in self._matched)
        return {rule: answer for rule, answer in found if answer is not None}

    @property
    def outcomes(self) -> dict[str, Outcome]:
        """What every rule comes to, by key, as far as things have come."""
        cut = self.ended is End.REFUSED
        return {key: found for scan in self._scans for key, found in scan.outcomes(cut=cut).items()}

    # How it works.

    def _landed(self, call: int, now: float) -> _Flight | None:
        # What comes at the last moment still counts.
        if now > self._deadline:
            self.expire(now)
        flight = self._flights.pop(call, None)
        if flight is None:
            return None
        self._no_room.discard(call)
        lane = self._lanes[flight.scan.given.deployment]
        lane.shared.change(-1, now)
        lane.busy -= 1
        flight.scan.in_flight -= 1
        return flight if self.ended is None else None

    def _found(self, scan: InputScan, number: int, answers: Mapping[str, Answer]) -> Found | UnknownReason:
        question = scan.questions[number].question
        answer = answers.get(question.key, Unknown(UnknownReason.INVALID_ANSWER))
        if isinstance(answer, Unknown):
            return answer.reason
        found = valid(question.type, answer)
        return UnknownReason.INVALID_ANSWER if found is None else found

    def _count(self, scan: InputScan, part: Part, length: int, found: Mapping[int, Found | UnknownReason]) -> None:
        decided = scan.answered(part, length, found)
        for question, rule in decided:
            self._matched.append((rule.key, scan, scan.questions.index(question)))
        self._check(rule.key for _, rule in decided)

    def _lose(self, flight: _Flight, reason: UnknownReason) -> None:
        self._count(flight.scan, flight.part, flight.length, dict.fromkeys(flight.asked, reason))

    def _check(self, rules: Iterable[str]) -> None:
        """End when one of these matches settles that the request is refused."""
        for rule in rules:
            if self.ended is None and self._refuses(rule, self.evidence):
                self.ended, self.refused_by = End.REFUSED, rule

    def _go_on(self, now: float) -> list[Ask]:
        self.expire(now)
        asks: list[Ask] = []
        while self.ended is None and (ask := self._send(now)) is not None:
            asks.append(ask)
        if self.ended is None and not any(scan.open for scan in self._scans):
            self.ended = End.READ
        return asks if self.ended is None else []

    def _send(self, now: float) -> Ask | None:
        """The most urgent window of a lane with room. A window of nothing but white space needs no call."""
        for lane in self._lanes.values():
            while lane.busy < lane.lane.sizes.max_parallel and self.ended is None:
                offers = [(*offer, at) for at, scan in enumerate(lane.scans) if (offer := scan.offer()) is not None]
                if not offers:
                    break
                kind, _, at = min(offers)
                scan = lane.scans[at]
                part = scan.take(kind)
                text = part.written(scan.text, scan.twins)
                asked = scan.asked(part)
                if not text or text.isspace():
                    empty = {number: NOTHING[scan.questions[number].question.type] for number in asked}
                    self._count(scan, part, len(text), empty)
                    continue
                return self._sent(lane, scan, part, text, asked, now)
        return None

    def _sent(self, lane: _Lane, scan: InputScan, part: Part, text: str, asked: tuple[int, ...], now: float) -> Ask:
        call = next(self._ids)
        lane.busy += 1
        scan.in_flight += 1
        scan.pace.begin(now)
        self._flights[call] = _Flight(scan, part, len(text), asked, now, lane.shared.change(1, now))
        return Ask(
            id=call,
            deployment=scan.given.deployment,
            input=scan.given.name,
            text=text,
            questions=tuple(scan.questions[number].question.key for number in asked),
            alone=scan.alone and part.twin is None,
            twin=part.twin is not None,
        )

    def _keep_up(self, scan: InputScan, now: float) -> None:
        """Read what is left in runs, if the scan is behind and its deployment's pace says that this helps."""
        lane = self._lanes[scan.given.deployment]
        calls, left = scan.left()
        if calls < 2 or scan.pace.windows < min(lane.lane.sizes.max_parallel, len(scan.plan.order)):
            return
        flying = [flight for flight in self._flights.values() if flight.scan.given.deployment == scan.given.deployment]
        own = ((flight.part.size, flight.at) for flight in flying if flight.scan is scan)
        finish, cost = scan.pace.finish(left, own, now), lane.lane.pace.cost
        if finish is None or finish <= self._deadline or cost is None:
            return
        others = [each.left() for each in lane.scans if each is not scan and each.open]
        busy = cost.of(len(flying), sum(flight.part.size for flight in flying))
        busy += sum(cost.of(*each) for each in others)
        runs = _shortest(scan, cost, self._deadline - now - busy)
        if runs is not None:
            scan.use(runs)
            # What windows cost says nothing of runs.
            scan.pace.restart(now)


def _shortest(scan: InputScan, cost: Cost, room: float) -> Runs | None:
    """The shortest runs that are read in so many seconds; None if none are. The longest cost least."""
    longest = scan.runs(scan.longest_run) if scan.run_length < scan.longest_run else None
    if longest is None or cost.of(longest.calls, longest.size) > room:
        return None
    for length in range(scan.run_length + 1, scan.longest_run):
        runs = scan.runs(length)
        if runs is not None and cost.of(runs.calls, runs.size) <= room:
            return runs
    return longest
