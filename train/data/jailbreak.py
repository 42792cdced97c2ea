"""The guard against attacks: attacks, what looks like one, and what does not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from train.data import corpora, longtext
from train.data.attacks import attack, buried, lookalike
from train.data.domains import TEMPLATES, everyday
from train.data.slots import untidy
from train.examples import DOMAINS, Example

COUNT: Final = 24_000


def examples(seed: int, count: int) -> Iterator[Example]:
    """Attacks and harmless texts in turn."""
    rng = random.Random(f"jailbreak {seed}")
    for number in range(count):
        if number % 2:
            text, source, lang = attack(rng)
            yield Example(text, "jailbreak", "true", source, lang)
        else:
            text, source, lang = _harmless(rng)
            yield Example(text, "jailbreak", "false", source, lang)


def _harmless(rng: random.Random) -> tuple[str, str, str]:
    chance = rng.random()
    if chance < 0.45:
        text, lang = lookalike(rng)
        return untidy(text, rng), TEMPLATES, lang
    if chance < 0.65:
        text, source = longtext.piece(rng)
        # The same places and joints as of a buried attack, so that a break in the text says nothing.
        if rng.random() < 0.4:
            text = buried(text, lookalike(rng)[0] if rng.random() < 0.6 else everyday(rng), rng)
        return text, source, "en"
    if chance < 0.85:
        text, source = corpora.prompt(rng.choice(DOMAINS), rng)
        return text, source, "en"
    if chance < 0.92:
        return "\n".join(everyday(rng) for _ in range(rng.randint(2, 8))), TEMPLATES, "en"
    return everyday(rng), TEMPLATES, "en"
