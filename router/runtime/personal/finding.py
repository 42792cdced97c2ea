"""What a rule found, and the words beside it that rules ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from .shadow import Words, expression, shadow

RULES: Final = "pii/1"
"""The name by which a card asks for these recognisers. What they find changes with the name only."""

MODEL: Final = "model"
"""Who found a span that no rule did."""

EMAIL: Final = "EMAIL_ADDRESS"
PHONE: Final = "PHONE_NUMBER"
CARD: Final = "CREDIT_CARD"
IBAN: Final = "IBAN_CODE"
ADDRESS: Final = "IP_ADDRESS"
NATIONAL: Final = "US_SSN"
"""National numbers of every country: the 17 types have no wider name. The rule's name says which it was."""
LICENSE: Final = "US_DRIVER_LICENSE"
SECRET: Final = "SECRET"  # noqa: S105  a label
"""Keys, tokens, passwords. None of the 17 types: a card that has rules adds it."""

LABELS: Final = (EMAIL, PHONE, CARD, IBAN, ADDRESS, NATIONAL, LICENSE, SECRET)
"""What rules find."""

_NEAR: Final = 48
_FIELD: Final = 96


@dataclass(frozen=True, slots=True)
class Finding:
    """Code points `start` to `end`, exclusive. `rule` says which recogniser is certain of it."""

    start: int
    end: int
    label: str
    rule: str


class Seen:
    """A text as recognisers see it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.data = shadow(text)

    def before(self, place: int, near: int = _NEAR) -> str:
        """What stands before a place on its line, and a little of the line before."""
        return self.text[max(0, place - near) : place]

    @cached_property
    def has_digits(self) -> bool:
        """Whether there is a digit at all: most recognisers need one."""
        return _DIGIT.search(self.data) is not None


Recogniser = Callable[[Seen], Iterator[Finding]]

_DIGIT: Final = expression("[0-9]")
NAMES: Final = (
    "id|ids|uuid|guid|order|ticket|invoice|tracking|product|item|sku|request|session|trace|span|build|commit|revision|rev"
    "|version|serial|part|batch|case|issue|job|task|run|hash|checksum|timestamp|time|seed|isbn|ean|upc|bestellung|commande"
    "|pedido"
)
"""Words that name an identifier, as an expression."""
_IDENTIFIES: Final = Words(
    rf"(?i)(?:\b(?:{NAMES})|_(?:id|no|number|num|at|ts|time|key|hash|ref|count|size|bytes|ms|ns|us))"
    r"\b[\"']?(?: (?:no|nr|number|id|code|num)\b)?\.?\s{0,2}[:=#]{0,2}\s{0,2}[\"'#(\[]{0,2}$"
)


def identifies(seen: Seen, start: int) -> bool:
    """Whether the word right before names an identifier, so that the number after it is one."""
    return _IDENTIFIES.search(seen.before(start))


class Cue:
    """Words beside which a number is what they say."""

    __slots__ = ("_before", "_words")

    def __init__(self, words: str) -> None:
        self._words = Words(rf"(?i)(?:{words})")
        self._before = Words(rf"(?i)(?:{words})[^\n]{{0,24}}$")

    def anywhere(self, seen: Seen) -> bool:
        """Whether one is in the text at all: where none is, no number need be looked at."""
        return self._words.search(seen.text)

    def before(self, seen: Seen, place: int) -> bool:
        """Whether one stands before a place, at most a few words away."""
        return self._before.search(seen.before(place))
