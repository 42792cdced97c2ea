"""Programming tasks as contests state them: a story about cards or cities, behind which an algorithm is wanted.

By their words they are arithmetic or a tale; what is asked for is a program.
"""

from __future__ import annotations

import random

from train.data.slots import fill
from train.data.words import listed, section


def problem(rng: random.Random) -> str:
    """One task, from two sentences to a whole statement with its form of input."""
    slots = section("contests", "slots")
    parts = [rng.choice(listed("contests", "stories"))]
    parts += [rng.choice(listed("contests", "moves")) for _ in range(rng.choice((0, 1, 1, 2)))]
    parts.append(rng.choice(listed("contests", "wants")))
    text = " ".join(part for part in parts if part) + rng.choice(listed("contests", "forms"))
    if rng.random() < 0.2:
        text = "{name}\n\n" + text
    return fill(text, slots, rng)
