"""Probes: requests with what an operator expects of them, so that a policy has regression tests.

A probe is one line of JSON: what `posed` reads as `{"request", "format", "headers"}`, and beside it
`expect: {decision, model, status}`, of which at least one is written. `known_miss: true` keeps a probe that is known to
come out otherwise: its true expectation stays in sight, and the day on which it comes out right is reported.

Pure. What a probe came to is found out elsewhere; nothing here holds on to request text but the request itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import orjson

from router.explaining.posed import Posed, pose
from router.wire.errors import WireError

_KEYS: Final = frozenset({"request", "format", "headers", "expect", "known_miss", "why"})
_EXPECTED: Final[Mapping[str, type]] = {"decision": str, "model": str, "status": int}


class BadProbe(ValueError):
    """A line that is no probe. The message names file and line, what is allowed, and never the request's text."""


@dataclass(frozen=True, slots=True)
class Came:
    """What a request came to: HTTP status, decision and provider model. None: no decision, no backend."""

    status: int
    decision: str | None
    model: str | None


@dataclass(frozen=True, slots=True)
class Probe:
    """One line of a file. `expected` holds what was written of `decision`, `model`, `status`; None is no decision."""

    line: int
    posed: Posed
    expected: Mapping[str, str | int | None]
    known_miss: bool

    @property
    def group(self) -> str:
        """What probes are counted by: the expected decision, else the status, else the model."""
        for key in ("decision", "status", "model"):
            if key in self.expected:
                return str(self.expected[key] if self.expected[key] is not None else "no decision")
        raise AssertionError("a probe expects something")

    def holds(self, came: Came) -> bool:
        """Whether everything that is expected came."""
        return all(getattr(came, key) == value for key, value in self.expected.items())


class Verdict(StrEnum):
    """How a probe ended."""

    RIGHT = "right"
    WRONG = "wrong"
    KNOWN_MISS = "known_miss"
    FIXED = "fixed"


@dataclass(frozen=True, slots=True)
class Judged:
    """A probe with what it came to."""

    probe: Probe
    came: Came

    @property
    def right(self) -> bool:
        """Whether it came out as expected, a known miss or not."""
        return self.probe.holds(self.came)

    @property
    def verdict(self) -> Verdict:
        """How it ended."""
        if self.probe.known_miss:
            return Verdict.FIXED if self.right else Verdict.KNOWN_MISS
        return Verdict.RIGHT if self.right else Verdict.WRONG


@dataclass(frozen=True, slots=True)
class Tally:
    """Probes of one file, counted. `groups` maps what was expected to how many there are and how many came so."""

    verdicts: Mapping[Verdict, int]
    groups: Mapping[str, tuple[int, int]]

    @property
    def total(self) -> int:
        """How many there are."""
        return sum(self.verdicts.values())

    @property
    def right(self) -> int:
        """How many came out as expected; a known miss does not, one that is fixed does."""
        return self.verdicts[Verdict.RIGHT] + self.verdicts[Verdict.FIXED]

    @property
    def share(self) -> float:
        """The share that came out as expected, 0 to 1."""
        return self.right / self.total if self.total else 0.0


def tally(judged: Iterable[Judged]) -> Tally:
    """Count."""
    verdicts: Counter[Verdict] = Counter()
    groups: dict[str, tuple[int, int]] = {}
    for one in judged:
        verdicts[one.verdict] += 1
        number, right = groups.get(one.probe.group, (0, 0))
        groups[one.probe.group] = (number + 1, right + one.right)
    return Tally({verdict: verdicts[verdict] for verdict in Verdict}, groups)


def read_probes(text: str, file: str, decisions: Iterable[str] | None = None) -> tuple[Probe, ...]:
    """The probes of a file; empty lines are skipped. `decisions` are the names that a decision can have, if known.

    Raises BadProbe for the first line that is none, and for a file without any.
    """
    known = None if decisions is None else frozenset(decisions)
    lines = enumerate(text.splitlines(), start=1)
    probes = tuple(_probe(line, number, f"{file}:{number}", known) for number, line in lines if line.strip())
    if not probes:
        raise BadProbe(f"{file}: holds no probes; write one JSON object a line")
    return probes


def _probe(line: str, number: int, where: str, decisions: frozenset[str] | None) -> Probe:
    try:
        document = orjson.loads(line)
    except orjson.JSONDecodeError:
        raise BadProbe(f"{where}: is no JSON; a probe stands in one line") from None
    if type(document) is not dict or "request" not in document or "expect" not in document:
        raise BadProbe(f"{where}: a probe is an object with request and expect")
    if strange := sorted(document.keys() - _KEYS):
        raise BadProbe(f"{where}: unknown key {strange[0]:.64}; known are {', '.join(sorted(_KEYS))}")
    if type(document.get("known_miss", False)) is not bool:
        raise BadProbe(f"{where}: known_miss is true or false")
    asked = {key: document[key] for key in ("request", "format", "headers") if key in document}
    try:
        posed = pose(orjson.dumps(asked))
    except WireError as error:
        raise BadProbe(f"{where}: {error.message}") from None
    return Probe(number, posed, _expectation(document["expect"], where, decisions), document.get("known_miss", False))


def _expectation(written: Any, where: str, decisions: frozenset[str] | None) -> Mapping[str, str | int | None]:
    if type(written) is not dict or not written or written.keys() - _EXPECTED.keys():
        raise BadProbe(f"{where}: expect is an object with one or more of decision, model, status")
    for key, value in written.items():
        if type(value) is not _EXPECTED[key] and not (value is None and key != "status"):
            allowed = "a number" if key == "status" else "a name, or null for none"
            raise BadProbe(f"{where}: expect.{key} is {allowed}")
    name = written.get("decision")
    if decisions is not None and name is not None and name not in decisions:
        raise BadProbe(f"{where}: there is no decision {name!r}; there are: {', '.join(sorted(decisions))}")
    return written
