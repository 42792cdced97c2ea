"""Regular expressions of operators: RE2's syntax, whose time grows with the text alone.

RE2 knows no look-around and no back-references, which is what makes it linear; such expressions are refused at load.
"""

from __future__ import annotations

from typing import Final

import re2

_MEMORY: Final = 256 * 1024 * 1024
"""Most that the automata of one recipe may take, in bytes. What is not needed is not taken."""


class BadPattern(ValueError):
    """An expression that RE2 does not accept; the message says why."""


def options() -> re2.Options:
    """How expressions are compiled everywhere."""
    chosen = re2.Options()
    chosen.log_errors = False
    chosen.max_mem = _MEMORY
    return chosen


def cased(pattern: str, *, case_sensitive: bool) -> str:
    """The expression as it is compiled."""
    return pattern if case_sensitive else f"(?i:{pattern})"


def compile_pattern(pattern: str, *, case_sensitive: bool) -> re2._Regexp:
    """One expression by itself. Raises BadPattern."""
    try:
        re2.compile(pattern, options())  # without what `cased` adds, which could complete a broken one
        return re2.compile(cased(pattern, case_sensitive=case_sensitive), options())
    except re2.error as error:
        reason = error.args[0] if error.args else "cannot be read"
        raise BadPattern(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from None
