"""Every regular expression of a recipe's rules in one automaton of RE2: time grows with the text and nothing else."""

from __future__ import annotations

import re2

from router.config.expressions import cased, compile_pattern, options


class Patterns:
    """Expressions collected from rules, then `compile`d once."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._set: re2.Set | None = None

    def add(self, pattern: str, *, case_sensitive: bool) -> int:
        """The number of an expression. Raises `config.expressions.BadPattern`."""
        compile_pattern(pattern, case_sensitive=case_sensitive)
        return self._known.setdefault(cased(pattern, case_sensitive=case_sensitive), len(self._known))

    def compile(self) -> None:
        """Build the automaton."""
        if not self._known:
            return
        self._set = re2.Set.SearchSet(options())
        for pattern in self._known:
            self._set.Add(pattern)
        self._set.Compile()

    def find(self, text: bytes) -> frozenset[int]:
        """The numbers of the expressions that match somewhere in a text in UTF-8."""
        return frozenset() if self._set is None else frozenset(self._set.Match(text) or ())
