"""What is wrong with a configuration, where, and what would be right.

A reader of a configuration never stops at the first mistake: every check reports `Problem`s, and `ConfigError` carries
all of them in the order of the file.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]
Path = tuple[str | int, ...]

_BARE_KEY = re.compile(r"[\w-]+")


@dataclass(frozen=True, slots=True)
class Place:
    """A position in the text; both numbers count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake or warning. `path` is dotted (`recipes[0].decisions[1].rules`), "" for the document as a whole."""

    severity: Severity
    file: str
    line: int
    column: int
    path: str
    message: str
    hint: str | None = None

    def render(self) -> str:
        """One line that editors and terminals can jump to."""
        parts = [f"{self.file}:{self.line}:{self.column}"]
        if self.severity == "warning":
            parts.append("warning")
        if self.path:
            parts.append(self.path)
        parts.append(self.message)
        text = ": ".join(parts)
        return f"{text}; {self.hint}" if self.hint else text


class ConfigError(Exception):
    """The configuration cannot be used. `problems` holds every error, and the warnings found on the way."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = in_file_order(problems)
        super().__init__("\n".join(problem.render() for problem in self.problems))


def in_file_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Problems from top to bottom, each once."""
    return tuple(sorted(dict.fromkeys(problems), key=lambda p: (p.line, p.column, p.path, p.message)))


def dotted(path: Path) -> str:
    """A path as people write it: `a.b[0]`, with odd keys in quotes."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _BARE_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f'["{part}"]'
    return text


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` is most likely a slip of, or None."""
    names = list(known)
    folded = {known_name.casefold(): known_name for known_name in names}
    close = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None
