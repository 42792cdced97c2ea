"""Literals as regular expressions that match wherever the literal occurs, and rarely anywhere else.

A text in which they match nowhere needs no closer look. `folding` and `literals` say what an occurrence is: letters
compared by `str.casefold`, white space of any length, whole words. Here sides are looked at only where they are ASCII.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final

from router.signals.scripts import joins

_SPACE: Final = r"[\t-\r\x1c-\x20\x{a0}\x{2028}\x{3000}]+"
_LEFT: Final = r"(?:\A|[^0-9A-Za-z_])"
_RIGHT: Final = r"(?:\z|[^0-9A-Za-z_])"
_BOTTOM, _TOP = 0xDF, 0xFB18  # between these lies every character whose folded form is longer than one


def any_of(literals: Iterable[tuple[str, bool]]) -> str:
    """One expression for literals as `literals` prepares them, each with whether it is case-sensitive."""
    return "|".join(_loose(text, case_sensitive=case_sensitive) for text, case_sensitive in literals)


def _loose(text: str, *, case_sensitive: bool) -> str:
    written = "".join(_exactly(text) if case_sensitive else _folded(text))
    left, right = _LEFT if joins(text[0]) else "", _RIGHT if joins(text[-1]) else ""
    return f"{left}(?:{written}){right}" if case_sensitive else f"{left}(?i:{written}){right}"


def _exactly(text: str) -> Iterable[str]:
    return (_SPACE if character == " " else _escaped(character) for character in text)


def _folded(text: str) -> Iterable[str]:
    """The same, where some of the characters may be the folded form of one: "ss" may be written "ß"."""
    inside = [False] * len(text)
    single: set[str] = set()
    for folded, written in _longer_folded().items():
        place = text.find(folded)
        while place >= 0:
            inside[place : place + len(folded)] = [True] * len(folded)
            single |= written
            place = text.find(folded, place + 1)
    choice = "".join(map(_escaped, sorted(single)))
    position = 0
    while position < len(text):
        if not inside[position]:
            yield _SPACE if text[position] == " " else _escaped(text[position])
            position += 1
            continue
        end = position
        while end < len(text) and inside[end]:
            end += 1
        own = "".join(map(_escaped, sorted(set(text[position:end]))))
        yield f"[{choice}{own}]{{1,{end - position}}}"
        position = end


def _escaped(character: str) -> str:
    return character if character.isascii() and character.isalnum() else f"\\x{{{ord(character):x}}}"


@cache
def _longer_folded() -> dict[str, set[str]]:
    """Characters by their folded form, where that is longer than one character."""
    found: dict[str, set[str]] = {}
    for code in range(_BOTTOM, _TOP):
        folded = chr(code).casefold()
        if len(folded) > 1:
            found.setdefault(folded, set()).add(chr(code))
    return found
