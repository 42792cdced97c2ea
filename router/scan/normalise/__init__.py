"""A text as a person would read it: without disguises, and with the way back.

A guard that reads only what is written misses what is meant: letters of other scripts, invisible characters between
letters, letters with spaces between them or written as escapes, text in base64. `normalise` undoes these, one kind
after the other, in linear time, and never makes a text more than twice as long in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from router.scan.normalise.characters import characters, composed, controls, may_be_controls
from router.scan.normalise.edits import Edit, Step
from router.scan.normalise.encoded import encoded, may_be_encoded
from router.scan.normalise.escapes import escapes, may_be_escaped
from router.scan.normalise.homoglyphs import homoglyphs
from router.scan.normalise.spacing import may_be_spaced, spacing


class Normalised(NamedTuple):
    """A text made plain. `changed` are the stretches of the original, in code points, that are written otherwise."""

    text: str
    steps: tuple[Step, ...]
    changed: tuple[tuple[int, int], ...]

    def back(self, start: int, end: int) -> tuple[int, int]:
        """The smallest stretch of the original that holds all that a span of the plain text was made of."""
        for step in reversed(self.steps):
            start, end = step.back(start, end)
        return start, end


def is_plain(text: str) -> bool:
    """Whether nothing can change in a text, told at a glance; False where it would take a closer look."""
    if not text.isascii():
        return False
    data = text.encode()
    return not (may_be_controls(data) or may_be_spaced(data) or may_be_encoded(data) or may_be_escaped(data))


def normalise(text: str) -> Normalised:
    """Make a text plain."""
    steps: list[Step] = []
    changed: list[tuple[int, int]] = []

    def undo(kind: Callable[[str], list[Edit]], plain: str) -> str:
        edits = kind(plain)
        if not edits:
            return plain
        step = Step(plain, edits)
        changed.extend(_back(steps, *stretch) for stretch in step.changed)
        steps.append(step)
        return step.text

    # What an escape stands for may be in disguise itself.
    plain = undo(escapes, text)
    for kind in _ASCII if plain.isascii() else _ANY:
        plain = undo(kind, plain)
    return Normalised(plain, tuple(steps), tuple(sorted(changed)))


_ASCII: Final = (controls, spacing, encoded)
_ANY: Final = (characters, composed, homoglyphs, spacing, encoded)


def _back(steps: Sequence[Step], start: int, end: int) -> tuple[int, int]:
    for step in reversed(steps):
        start, end = step.back(start, end)
    return start, end
