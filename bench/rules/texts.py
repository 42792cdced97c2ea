"""The texts and rules that are measured. Made from fixed words with a fixed seed, so that runs compare."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Final

from router.config.heuristics import (
    ContextRule,
    ConversationRule,
    HeuristicRule,
    KeywordRule,
    StructureRule,
)
from router.questions import Predicate

SIZES: Final = {"1 KB": 1_000, "32 KB": 32_000, "1 MB": 1_000_000}

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
    """A text of each size in each kind, as measured in bytes of UTF-8."""
    chance = random.Random(7)
    return {kind: [_filled(kind, size, chance) for size in SIZES.values()] for kind in ("English", "Chinese", "code")}


def many() -> list[HeuristicRule]:
    """1,000 literals and 100 regular expressions, in rules of ten."""
    words: list[HeuristicRule] = [
        KeywordRule(
            f"keyword:words{i}",
            "OR",
            "exact",
            tuple(f"{_ENGLISH[j]} {_ENGLISH[(i * 7 + j) % 30]}{i}" for j in range(10)),
        )
        for i in range(100)
    ]
    expressions: list[HeuristicRule] = [
        KeywordRule(
            f"keyword:expressions{i}", "OR", "regex", tuple(rf"\bcase{i}{j}[ -]?\d{{2,6}}\b" for j in range(10))
        )
        for i in range(10)
    ]
    return words + expressions


def typical() -> list[HeuristicRule]:
    """What a recipe of real life has: a few lists of words, the length, tools, and a look at the form."""
    return [
        KeywordRule(
            "keyword:code", "OR", "exact", ("python", "traceback", "refactor", "unit test", "compile", "regex")
        ),
        KeywordRule("keyword:billing", "OR", "exact", ("refund", "invoice", "chargeback", "credit card", "退款")),
        KeywordRule("keyword:persona", "OR", "regex", ("DAN", r"ignore (all|previous) instructions", "jailbreak")),
        ContextRule("context:long", 32_000, None),
        ConversationRule("conversation:tools", "exists", "tool_definition"),
        StructureRule("structure:steps", "exists", "regex", pattern=r"(?m)^\s*\d+\.\s"),
        StructureRule("structure:long", "count", "text_bytes", predicate=Predicate(gte=8_000)),
    ]


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
