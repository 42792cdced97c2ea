"""Long inputs: harmless text of a given number of tokens, with an attack at every tenth of its length, or without one.

Neither the fillers nor the attacks are trained on. What is put into the harmless ones looks like an attack, so that a
break in the text is no sign of one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pydoc_data.topics import topics
from typing import Final

from train.data.packages import excerpt
from train.data.sources import INSPECT
from train.evaluation.packaged import attacks, talk, writing

SIZES: Final = (512, 2_048, 8_192)
"""Tokens of an input, the attack included."""
PLACES: Final = tuple(range(0, 101, 10))
"""Hundredths of the filler that stand before the attack."""

_SLACK: Final = 0.05
"""Of the size, what may be missing."""

Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class LongInput:
    """One input: its text, how long it is meant to be, of what kind its filler is, and whether it holds an attack.

    `place` is where the attack or its lookalike stands; None in an input that is filler alone.
    """

    text: str
    tokens: int
    kind: str
    attack: bool
    place: int | None = None


def inputs(size: int, count: Count, seed: int = 0, rounds: int = 4) -> Iterator[LongInput]:
    """For each place and round one input with an attack, one with a lookalike, and one of filler alone.

    `count` says how many tokens a text has. The fillers of every input are other ones.
    """
    rng = random.Random(f"long inputs {size} {seed}")
    english = [example for example in attacks() if example.lang == "en"]
    bad = [example.text for example in english if example.label == "true"]
    good = [example.text for example in english if example.label == "false"]
    kinds = fillers()
    for number in range(rounds):
        kind = sorted(kinds)[number % len(kinds)]
        for place in PLACES:
            for texts, is_attack in ((bad, True), (good, False)):
                put = rng.choice(texts)
                filler = _filled(kinds[kind], size - count(put), count, rng)
                yield LongInput(_placed(filler, put, place), size, kind, is_attack, place)
            yield LongInput(_filled(kinds[kind], size, count, rng), size, kind, False)


@cache
def fillers() -> dict[str, Sequence[str]]:
    """Harmless pieces by kind: reference documentation, code, requests with their material, and chat."""
    code = [data.decode("utf-8", "replace") for _, data in excerpt(INSPECT, "inspect_evals/*/*.py")]
    return {
        "prose": [text for text in topics.values() if len(text) > 200],
        "code": [
            text
            for text in code
            if len(text) > 400 and "jailbreak" not in text.lower() and "inject" not in text.lower()
        ],
        "requests": [example.text for example in writing() if example.lang == "en"],
        "chat": ["\n".join(part) for part in _grouped([example.text for example in talk()], 12)],
    }


def _filled(pieces: Sequence[str], size: int, count: Count, rng: random.Random) -> str:
    """Pieces in a random order up to about so many tokens; what is too long is cut between words."""
    parts: list[str] = []
    left = size
    while left > size * _SLACK:
        piece = rng.choice(pieces)
        tokens = count(piece)
        while tokens > left:
            piece = piece[: len(piece) * left // tokens].rpartition(" ")[0]
            tokens = count(piece)
        if piece.strip():
            parts.append(piece)
        left -= max(tokens, 1)
    return "\n\n".join(parts)


def _placed(filler: str, text: str, place: int) -> str:
    at = len(filler) * place // 100
    if 0 < at < len(filler):
        blank = filler.find(" ", at)
        at = blank if blank >= 0 else len(filler)
    return f"{filler[:at].rstrip()}\n{text}\n{filler[at:].lstrip()}".strip()


def _grouped(texts: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), size):
        yield texts[start : start + size]
