"""A text as ASCII, one byte a code point, so that expressions run on bytes and offsets count code points.

Digits of every script become 0 to 9, wide forms their narrow ones, dashes `-`, and spaces and invisible joiners a
space. A letter outside ASCII becomes `LETTER`, so that no word is taken for ended in its middle; a character of a
script that is written without spaces, and everything else, becomes `OTHER`, which ends a word.
"""

from __future__ import annotations

import unicodedata
from typing import Any, Final

import re2

LETTER: Final = 2
"""Stands for a letter, or a mark on one, outside ASCII."""
OTHER: Final = 3

WORD: Final = frozenset(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_" + bytes([LETTER]))
DIGITS: Final = frozenset(b"0123456789")

_UNSPACED: Final = (
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0x4DBF), (0x4E00, 0xA4CF), (0xAC00, 0xD7FF)),
    *((0xF900, 0xFAFF), (0xFF66, 0xFFDC), (0x20000, 0x3FFFF)),
)
_KEPT: Final = 4096


class _Table(dict[int, int]):
    """Code points that have been met; bounded, because a client chooses them."""

    def __missing__(self, point: int) -> int:
        place = _place(point)
        if len(self) < _KEPT:
            self[point] = place
        return place


_TABLE: Final = _Table((point, point) for point in range(128))


def shadow(text: str) -> bytes:
    """The text in ASCII; byte i stands for code point i."""
    return text.encode() if text.isascii() else text.translate(_TABLE).encode("ascii")


def _place(point: int) -> int:
    if 0xFF01 <= point <= 0xFF5E:
        return point - 0xFEE0
    char = chr(point)
    digit = unicodedata.decimal(char, None)
    if digit is not None:
        return 0x30 + digit
    category = unicodedata.category(char)
    if category == "Pd" or point == 0x2212:
        return 0x2D
    if category in ("Zs", "Cf"):
        return 0x20
    if category[0] in "LM" and not any(low <= point <= high for low, high in _UNSPACED):
        return LETTER
    return OTHER


def expression(pattern: str, *, ignore_case: bool = False) -> Any:
    """A compiled expression over shadows."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.case_sensitive = not ignore_case
    return re2.compile(pattern.encode("latin-1"), options)


class Words:
    """An expression over text as it is written, for letters that a shadow does not tell apart."""

    __slots__ = ("_expression",)

    def __init__(self, pattern: str) -> None:
        self._expression = re2.compile(pattern.encode())

    def search(self, text: str) -> bool:
        """Whether it is anywhere in the text. Half a surrogate pair is no letter of any word."""
        return self._expression.search(text.encode("utf-8", "replace")) is not None

    def fullmatch(self, text: str) -> bool:
        """Whether the text is one."""
        return self._expression.fullmatch(text.encode("utf-8", "replace")) is not None


def alone(data: bytes, start: int, end: int) -> bool:
    """Whether no word or number goes on at either side: neither a word's character nor a fraction's digits."""
    return not (
        (start > 0 and data[start - 1] in WORD)
        or (end < len(data) and data[end] in WORD)
        or (start > 1 and data[start - 1] in b"." and data[start - 2] in DIGITS)
        or (end + 1 < len(data) and data[end] in b"." and data[end + 1] in DIGITS)
    )


def chained(data: bytes, start: int, end: int) -> bool:
    """Whether a dash joins it to more: then it is a part of a longer identifier."""
    return (start > 1 and data[start - 1] in b"-" and data[start - 2] in WORD) or (
        end + 1 < len(data) and data[end] in b"-" and data[end + 1] in WORD
    )


def spaced(data: bytes, start: int, end: int) -> bool:
    """Whether another group of digits stands a space away: then it may be a part of a longer number."""
    return (start > 1 and data[start - 1] in b" " and data[start - 2] in DIGITS) or (
        end + 1 < len(data) and data[end] in b" " and data[end + 1] in DIGITS
    )


def digits_of(data: bytes) -> str:
    """Its digits alone."""
    return "".join(chr(byte) for byte in data if byte in DIGITS)
