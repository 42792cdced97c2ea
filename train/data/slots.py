"""Templates: sentences with slots, and the small untidiness of typed text."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Final

Slots = Mapping[str, Sequence[str]]

_SLOT: Final = re.compile(r"\{([a-z_0-9]+)\}")
_DEEPEST: Final = 6
_BEFORE: Final = (
    "hi, ",
    "hey, ",
    "hello! ",
    "please ",
    "quick question: ",
    "can you help? ",
    "ok so ",
    "I was wondering, ",
)
_AFTER: Final = (" thanks", " please", " asap", " Thanks in advance!", " any ideas?", " thx", " Thank you.")


def fill(template: str, slots: Slots, rng: random.Random) -> str:
    """The template with every slot replaced by one of its values, which may hold slots. Unknown names stay."""
    text = template
    for _ in range(_DEEPEST):
        filled = _SLOT.sub(lambda found: rng.choice(slots[found[1]]) if found[1] in slots else found[0], text)
        if filled == text:
            break
        text = filled
    return text


def bound(template: str, slots: Slots, rng: random.Random) -> dict[str, Sequence[str]]:
    """The slots with one value chosen for each name that the template uses: what two texts about one thing share."""
    chosen = {name: (rng.choice(slots[name]),) for name in _SLOT.findall(template) if name in slots}
    return {**slots, **chosen}


def untidy(text: str, rng: random.Random) -> str:
    """The text as somebody in a hurry types it: sometimes a greeting, lower case, no full stop, a slip."""
    if len(text) < 400:
        if rng.random() < 0.1 and "\n" not in text:
            before = rng.choice(_BEFORE)
            text = before + (text[0].lower() + text[1:] if text[1:2].islower() and text[0] != "I" else text)
        if rng.random() < 0.08:
            text += rng.choice(_AFTER)
    chance = rng.random()
    if chance < 0.15:
        text = text.lower()
    elif chance < 0.25:
        text = text.rstrip("?.!")
    elif chance < 0.26 and len(text) < 60:
        text = text.upper()
    if rng.random() < 0.05 and len(text) > 12:
        at = rng.randrange(2, len(text) - 2)
        text = (
            text[:at] + text[at + 1 :] if rng.random() < 0.5 else text[:at] + text[at + 1] + text[at] + text[at + 2 :]
        )
    return text
