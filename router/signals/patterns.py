"""Every regular expression of a recipe's rules in one automaton of RE2: time grows with the text and nothing else.

RE2 knows no look-around and no back-references, which is what makes it linear; such expressions are refused at load.
"""

from __future__ import annotations

from typing import Final

import re2

_MEMORY: Final = 256 * 1024 * 1024
"""Most that the automata of one recipe may take, in bytes. What is not needed is not taken."""


class BadPattern(ValueError):
    """An expression that RE2 does not accept; the message says why."""


def compile_pattern(pattern: str, *, case_sensitive: bool) -> re2._Regexp:
    """One expression by itself, for counting. Raises BadPattern."""
    try:
        return re2.compile(_cased(pattern, case_sensitive=case_sensitive), _options())
    except re2.error as error:
        reason = error.args[0] if error.args else "cannot be read"
        raise BadPattern(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from None


class Patterns:
    """Expressions collected from rules, then `compile`d once."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._set: re2.Set | None = None

    def add(self, pattern: str, *, case_sensitive: bool) -> int:
        """The number of an expression. Raises BadPattern."""
        compile_pattern(pattern, case_sensitive=case_sensitive)
        return self._known.setdefault(_cased(pattern, case_sensitive=case_sensitive), len(self._known))

    def compile(self) -> None:
        """Build the automaton."""
        if not self._known:
            return
        self._set = re2.Set.SearchSet(_options())
        for pattern in self._known:
            self._set.Add(pattern)
        self._set.Compile()

    def find(self, text: bytes) -> frozenset[int]:
        """The numbers of the expressions that match somewhere in a text in UTF-8."""
        return frozenset() if self._set is None else frozenset(self._set.Match(text))


def _cased(pattern: str, *, case_sensitive: bool) -> str:
    return pattern if case_sensitive else f"(?i:{pattern})"


def _options() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    return options
