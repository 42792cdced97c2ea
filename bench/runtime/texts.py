"""States and questions to ask. No two states are alike, so that nothing that keeps answers could help."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

_SENTENCE = (
    "please explain why the customer was charged twice last month and how we can get the money before the end of the "
    "year our team needs help with a report about sales in the north and the data that came from an old system it is "
    "not clear who should write the code or check the result when the server is down we lost many hours again"
)
WORDS = _SENTENCE.split()
"""Each is one token of every common vocabulary."""
FRAMING = 2
"""Tokens that begin and end a row."""

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "domain": {"type": "choice", "preset": "domains"},
    "attack": {"type": "noul", "preset": "jailbreak"},
    "effort": {"type": "choice", "preset": "complexity"},
    "harm": {"type": "noul", "preset": "safety"},
    "private": {"type": "span", "preset": "pii"},
}


def states(tokens: int, seed: int = 1) -> Iterator[str]:
    """Texts that make a row of exactly `tokens` tokens."""
    draw = random.Random(seed)
    while True:
        yield " ".join(draw.choices(WORDS, k=tokens - FRAMING))


def free(mark: str = "") -> Mapping[str, Mapping[str, Any]]:
    """Five questions in free words. With another `mark` no text of them was ever read before."""

    def text(words: str) -> str:
        return f"{words} {mark}".strip()

    return {
        "tool": {"type": "noul", "instructions": text("Does this need a tool call?")},
        "urgent": {"type": "noul", "instructions": text("Is this urgent?")},
        "team": {
            "type": "choice",
            "instructions": text("Which team should answer?"),
            "criteria": {"billing": text("payments"), "technical": text("crashes"), "sales": text("prices")},
        },
        "upset": {
            "type": "score",
            "instructions": text("How upset is the customer?"),
            "criteria": [text("calm"), text("annoyed"), text("furious")],
        },
        "topics": {
            "type": "set",
            "instructions": text("Which topics come up?"),
            "criteria": {"money": text("money"), "time": text("deadlines")},
        },
    }


def marks() -> Iterator[str]:
    """Words that were not used before."""
    draw = random.Random(2)
    for number in itertools.count():
        yield f"{draw.choice(WORDS)} {number}"


def body(state: str, questions: Mapping[str, Any]) -> bytes:
    """A System One request."""
    return orjson.dumps({"state": state, "questions": questions})
