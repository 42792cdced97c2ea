"""Partitions: rules of which at most one matches for everything that reads them afterwards.

Of the members that matched with a confidence the surest keeps its match (the first of equals); when none did, the
default member matches, without any confidence. Members compete before projections and decisions read them.

A member that is unknown may turn out the surest of all, so beside it no match is certain: what would have won is
unknown too, and so is the default. What did not match stays that way.

Source: `reference.md` 2.6 (partitions).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from router.config.projections import Partition
from router.questions import UnknownReason
from router.signals.reading import Reading

Readings = Mapping[str, Reading]


class Partitions:
    """The partitions of one recipe. `rivals` names, for each member, all members of its partition."""

    __slots__ = ("_partitions", "defaults", "rivals")

    def __init__(self, partitions: Sequence[Partition]) -> None:
        self._partitions = tuple(partitions)
        self.defaults = frozenset(partition.default for partition in partitions)
        self.rivals: Mapping[str, frozenset[str]] = {
            member: frozenset(partition.members) for partition in partitions for member in partition.members
        }

    def apply(self, readings: Readings) -> Readings:
        """The readings after the competition; the same object when there is none."""
        if not self._partitions:
            return readings
        settled = dict(readings)
        for partition in self._partitions:
            settled.update(_compete(partition, readings))
        return settled


def _compete(partition: Partition, readings: Readings) -> Readings:
    members = {name: reading for name in partition.members if (reading := readings.get(name)) is not None}
    contenders = {
        name: reading.confidence
        for name, reading in members.items()
        if reading.matched and reading.confidence is not None
    }
    unknown = [name for name in partition.members if name not in members or members[name].matched is None]
    if unknown:
        # A missing reading may still come; it stays missing. What depends on it is unknown for the same reason.
        reason = next((members[name].reason for name in unknown if name in members), None) or UnknownReason.NOT_ASKED
        doubtful = [name for name in members if members[name].matched or (name == partition.default and not contenders)]
        return {name: Reading(members[name].type, None, reason=reason) for name in doubtful}
    if not contenders:
        default = members[partition.default]
        return {} if default.matched else {partition.default: replace(default, matched=True, confidence=None)}
    winner = max(contenders, key=contenders.__getitem__)
    changed = {name: _lost(members[name]) for name in contenders if name != winner}
    if partition.temperature is not None and len(contenders) > 1:
        changed[winner] = _softened(members[winner], contenders, partition.temperature)
    return changed


def _lost(reading: Reading) -> Reading:
    return replace(reading, matched=False, confidence=None, labels={})


def _softened(reading: Reading, contenders: Mapping[str, float], temperature: float) -> Reading:
    top = max(contenders.values())
    total = sum(math.exp((score - top) / temperature) for score in contenders.values())
    confidence = 1.0 / total
    return replace(reading, confidence=confidence, labels=dict.fromkeys(reading.labels, confidence))
