"""Text made comparable: no differences of case, and every run of white space one space.

It runs on every request with keyword rules, so it takes the cheap way where the text allows: bytes through one table.
"""

from __future__ import annotations

from typing import Final

_ASCII: Final = bytes(range(128))
_BEYOND: Final = "\u00a0\u2028\u3000"
_SPACED: Final = bytes(32 if chr(code).isspace() and code < 128 else code for code in range(256))
_FOLDED: Final = _SPACED.lower()


def fold(text: str) -> str:
    """`space`, and `str.casefold`: far cheaper where little is outside ASCII and nothing there has a case."""
    if text.isascii():
        return _joined(text.encode().translate(_FOLDED).decode())
    raw = text.encode("utf-8", "surrogatepass")
    rest = raw.translate(None, _ASCII)
    if len(rest) * 4 < len(raw):
        beyond = rest.decode("utf-8", "surrogatepass")
        if beyond.casefold() == beyond:
            return _joined(raw.translate(_FOLDED).decode("utf-8", "surrogatepass"))
    return space(text).casefold()


def space(text: str) -> str:
    """Single spaces in place of white space, and none at the ends."""
    return _joined(text.encode("utf-8", "surrogatepass").translate(_SPACED).decode("utf-8", "surrogatepass"))


def _joined(text: str) -> str:
    if not text.isascii():
        for character in _BEYOND:
            if character in text:
                text = text.replace(character, " ")
    while "  " in text:
        text = text.replace("  ", " ")
    return text.strip()
