"""The texts that are read. Made from fixed words with a fixed seed, so that runs compare."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Final

SIZES: Final = {"1 KB": 1_000, "32 KB": 32_000, "1 MB": 1_000_000}

_BETWEEN: Final = 250

_PROSE: Final = (
    "the quick brown fox jumps over a lazy dog while we compare prices of several plans and write a short report "
    "about the results for our team because nobody else has time to read every page of the long contract"
)
_ENGLISH: Final = tuple(_PROSE.split())
_CHINESE: Final = tuple(
    "我们今天需要比较几个方案的价格并为团队写一份关于结果的简短报告因为没有人有时间阅读这份很长的合同请帮忙整理一下"
)
_CODE: Final = (
    "def parse(self, value: str) -> int:\n    return int(value.strip() or 0)\n",
    "for item in items:\n    total += item.price * item.count\n",
    "class Handler(Base):\n    __slots__ = ('_name', '_size')\n",
    "if (result = fetch(url)) && result.ok { return result.body[0..n]; }\n",
)


def texts() -> Mapping[str, Sequence[str]]:
    """A text of each size in each kind, as measured in bytes of UTF-8. None of them holds what a rule looks for."""
    chance = random.Random(7)
    return {kind: [_filled(kind, size, chance) for size in SIZES.values()] for kind in ("English", "Chinese", "code")}


def with_hits(written: Sequence[str]) -> Sequence[str]:
    """The same texts, with something that one of `recipes.many` looks for every few hundred bytes."""
    chance = random.Random(11)
    return [_sprinkled(text, chance) for text in written]


def _sprinkled(text: str, chance: random.Random) -> str:
    parts = [text[start : start + _BETWEEN] for start in range(0, len(text), _BETWEEN)]
    found = (chance.choice((f" report {chance.randrange(100)} ", f" case{chance.randrange(100)}-1234 ")) for _ in parts)
    return "".join(one + hit for one, hit in zip(parts, found, strict=True))


def _filled(kind: str, size: int, chance: random.Random) -> str:
    parts: list[str] = []
    written = 0
    while written < size:
        if kind == "English":
            part = chance.choice(_ENGLISH) + " "
        else:
            part = chance.choice(_CHINESE if kind == "Chinese" else _CODE)
        parts.append(part)
        written += len(part.encode())
    return "".join(parts)
