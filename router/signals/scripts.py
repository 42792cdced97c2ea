"""Where words begin and end, in scripts with spaces and in scripts without."""

from __future__ import annotations

import re
import unicodedata
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
_ASCII_WORD: Final = re.compile(r"\w+", re.ASCII)  # the same in a text of ASCII, at a third of the cost


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
    return len((_ASCII_WORD if text.isascii() else _UNIT).findall(text))


def words(text: str) -> list[str]:
    """The words; a run of a script without spaces counts as one."""
    found: list[str] = (_ASCII_WORD if text.isascii() else _WORD).findall(text)
    return found
