"""How a text is written so that a filter of words does not see it; harmless text is written so as well."""

from __future__ import annotations

import base64
import codecs
import random
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

_LEET: Final = str.maketrans("aeiostl", "4310571")
_WIDE: Final = str.maketrans({chr(code): chr(code + 0xFEE0) for code in range(0x21, 0x7F)})
_ZERO_WIDTH: Final = "\u200b"


def acrostic(text: str, rng: random.Random) -> str:
    """A word for each letter of the text."""
    words: dict[str, tuple[str, ...]] = {}
    for word in _WORDS:
        words[word[0]] = (*words.get(word[0], ()), word)
    return " ".join(rng.choice(words[letter]) for letter in text.lower() if letter in words)


def dressed(text: str, rng: random.Random) -> dict[str, tuple[str, ...]]:
    """The text in every disguise, as slots of a template."""
    return {**{name: (disguise(text),) for name, disguise in DISGUISES.items()}, "acro": (acrostic(text, rng),)}


DISGUISES: Final[Mapping[str, Callable[[str], str]]] = MappingProxyType(
    {
        "b85": lambda text: base64.b85encode(text.encode()).decode(),
        "leet2": lambda text: text[: len(text) // 2].translate(_LEET),
        "lines": lambda text: "\n".join(text[:60]),
        "half1": lambda text: text[: len(text) // 2],
        "half2": lambda text: text[len(text) // 2 :],
        "b64": lambda text: base64.b64encode(text.encode()).decode(),
        "hex": lambda text: text.encode().hex(),
        "rot": lambda text: codecs.encode(text, "rot13"),
        "rev": lambda text: text[::-1],
        "leet": lambda text: text.translate(_LEET),
        "spaced": lambda text: " ".join("  " if letter == " " else letter for letter in text),
        "wide": lambda text: text.translate(_WIDE),
        "hidden": _ZERO_WIDTH.join,
        "bin": lambda text: " ".join(f"{byte:08b}" for byte in text.encode()),
    }
)
_WORDS: Final = [
    "apple",
    "bread",
    "cloud",
    "dream",
    "eagle",
    "field",
    "grass",
    "house",
    "island",
    "jacket",
    "kettle",
    "lemon",
    "mountain",
    "number",
    "orange",
    "paper",
    "quiet",
    "river",
    "stone",
    "table",
    "under",
    "violet",
    "window",
    "yellow",
    "zebra",
    "amber",
    "bottle",
    "copper",
    "dinner",
    "engine",
    "flower",
    "garden",
    "harbour",
    "inside",
    "jolly",
    "kitchen",
    "ladder",
    "morning",
    "needle",
    "ocean",
    "pencil",
    "rabbit",
    "silver",
    "ticket",
    "uncle",
    "valley",
    "winter",
    "young",
]
