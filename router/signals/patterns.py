"""Everything that rules look for in a text, in one automaton of RE2: time grows with the text and nothing else.

Most texts hold none of it, so one pass tells: it finds a few expressions at once, and of literals and of many
expressions only that one may be there. Then a second pass says which. (An automaton that tells many expressions apart
has a state for each set of them, which a text with several makes anew.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import re2

from router.config.expressions import cased, compile_pattern, options
from router.signals.facts import RequestFacts

_FEW: Final = 8

COMPOSED: Final = (
    *((0x0, 0x2FF), (0x388, 0x482), (0x48A, 0x590), (0x620, 0x64A), (0x660, 0x66F), (0x1200, 0x135C), (0x1E00, 0x1F70)),
    *((0x2002, 0x20CF), (0x212C, 0x2328), (0x232B, 0x2ADB), (0x2E00, 0x3029), (0x309B, 0xA66E), (0xABEE, 0xD7FF)),
    *((0xE000, 0xF8FF), (0xFE30, 0xFFFF), (0x1F000, 0x1FAFF)),
)
"""Characters that composing (NFC) leaves alone, whatever stands beside them. There are more; these are the usual."""


class Hits(NamedTuple):
    """Which expressions match, by number, and of which groups of literals one may occur."""

    words: frozenset[int]
    expressions: frozenset[int]


NONE: Final = Hits(frozenset(), frozenset())


class Patterns:
    """Expressions collected from rules, then `compile`d once together with what literals look like."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._first: re2.Set | None = None
        self._second: re2.Set | None = None
        self._words = self._other = -1

    def add(self, pattern: str, *, case_sensitive: bool) -> int:
        """The number of an expression. Raises `config.expressions.BadPattern`."""
        compile_pattern(pattern, case_sensitive=case_sensitive)
        return self._known.setdefault(cased(pattern, case_sensitive=case_sensitive), len(self._known))

    def compile(self, words: Sequence[str] = ()) -> None:
        """Build the automata. `words` is an expression for each group of literals, to match where any of it occurs."""
        if not self._known and not words:
            return
        first = list(self._known)
        together = "|".join(f"(?:{pattern})" for pattern in first)
        if len(first) > _FEW and _accepted(together):
            self._second = _set(first)
            first = [together]
        self._words = len(first)
        self._other = self._words + len(words)
        self._first = _set([*first, *words, _uncomposed()])

    def find(self, facts: RequestFacts) -> Hits:
        """What is found in one request's text."""
        if self._first is None:
            return NONE
        raw = facts.raw
        ids = self._first.Match(raw)
        if not ids:
            facts.is_composed(raw)
            return NONE
        if self._other in ids:
            ids = self._first.Match(facts.encoded) or ()
        else:
            facts.is_composed(raw)
        words = frozenset(number - self._words for number in ids if self._words <= number < self._other)
        if self._second is not None:
            return Hits(words, frozenset(self._second.Match(facts.encoded) or ()) if 0 in ids else NONE.expressions)
        return Hits(words, frozenset(number for number in ids if number < self._words))


def _set(patterns: list[str]) -> re2.Set:
    made = re2.Set.SearchSet(options())
    for pattern in patterns:
        made.Add(pattern)
    made.Compile()
    return made


def _accepted(pattern: str) -> bool:
    """Whether expressions can stand beside each other in one: not those that call two groups by the same name."""
    try:
        re2.compile(pattern, options())
    except re2.error:
        return False
    return True


def _uncomposed() -> str:
    """Matches every character that composing might change, or that might be composed with the one before it."""
    return "[^" + "".join(f"\\x{{{low:x}}}-\\x{{{high:x}}}" for low, high in COMPOSED) + "]"
