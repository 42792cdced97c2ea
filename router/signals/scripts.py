"""Where words begin and end, in scripts with spaces and in scripts without."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

# Written without spaces between words, or with particles stuck to them (Hangul): any place can be a word's end.
_UNSPACED: Final = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1100, 0x11FF),  # Hangul Jamo
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),
    (0x3040, 0x31FF),  # kana, Bopomofo
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7AF),  # Hangul
    (0xF900, 0xFAFF),
    (0x20000, 0x323AF),
)
_CLASS: Final = "".join(f"{chr(low)}-{chr(high)}" for low, high in _UNSPACED)
# One class and one repetition each: linear in the text.
_UNIT: Final = re.compile(f"[{_CLASS}]|[^\\W{_CLASS}]+")
_WORD: Final = re.compile(f"[{_CLASS}]+|[^\\W{_CLASS}]+")


def joins(character: str) -> bool:
    """Whether a character next to a word would make it part of a longer word."""
    if character.isascii():
        return character.isalnum() or character == "_"
    code = ord(character)
    if any(low <= code <= high for low, high in _UNSPACED):
        return False
    return character.isalnum() or unicodedata.category(character).startswith("M")


def units(text: str) -> int:
    """How much there is to read, alike in all languages: a character without spaces around it, or a run of letters."""
    return sum(1 for _ in _UNIT.finditer(text))


def words(text: str) -> Iterator[str]:
    """The words; a run of a script without spaces counts as one."""
    return (match.group() for match in _WORD.finditer(text))
