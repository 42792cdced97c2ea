"""Words written with something between their letters: `i g n o r e`, `i.g.n.o.r.e`, `i-g-n-o-r-e   t-h-i-s`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from router.scan.normalise.edits import Edit

_SPACES: Final = "".join(map(chr, (0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)))
_BETWEEN: Final = f" \t\n.,*|/~+_\u00b7\u2022{_SPACES}-"
_ALONE: Final = r"[^\W_](?![^\W_])"
# The letter at the end of a line is not the first one of what is spaced otherwise on the next.
_FIRST: Final = rf"{_ALONE}(?!(?!(?P=between))[{_BETWEEN}]{_ALONE})"
_SPACED: Final = re.compile(
    rf"(?<![^\W_])[^\W_](?P<between>[{_BETWEEN}]{{1,2}}){_FIRST}(?:(?P=between){_ALONE})*"
    rf"(?:[{_BETWEEN}]{{2,5}}{_FIRST}(?:(?P=between){_ALONE})*)*"
)
_LEAST_LETTERS: Final = 4
_LEAST_DIGITS: Final = 9
_CERTAIN: Final = 64
_UNKNOWN: Final = 63
"""`?`, which stands for all that is not ASCII, may be a letter."""
_SHAPE: Final = bytes(
    97 if code == _UNKNOWN or chr(code).isalnum() else 32 if chr(code) in _BETWEEN else 46 for code in range(256)
)


def may_be_spaced(ascii_text: bytes) -> bool:
    """Whether it is worth looking. All that is not ASCII stands as `?`."""
    shape = ascii_text.translate(_SHAPE)
    return b" a a a" in shape or b"  a  a" in shape


def spacing(text: str) -> list[Edit]:
    """The words without what stands between their letters."""
    if text.isascii() and not may_be_spaced(text.encode()):
        return []
    edits: list[Edit] = []
    for match in _SPACED.finditer(text):
        found = match[0]
        long = len(found) > _CERTAIN
        letters = _LEAST_LETTERS if long else sum(map(str.isalpha, found))
        digits = 0 if long else sum(map(str.isdigit, found))
        if letters >= _LEAST_LETTERS or letters + digits >= _LEAST_DIGITS:
            edits += _words(text, match.start(), match.end(), match["between"])
    return edits


def _words(text: str, start: int, end: int, between: str) -> Iterator[Edit]:
    """One edit a word, and one a gap between words."""
    step = 1 + len(between)
    before = start
    for match in _word(between).finditer(text, start, end):
        first, last = match.span()
        if first > before:
            yield Edit(before, first, " ")
        if last - first > 1:
            yield Edit(first, last, text[first:last:step], step, 1)
        before = last


@lru_cache(maxsize=256)
def _word(between: str) -> re.Pattern[str]:
    return re.compile(rf"[^\W_](?:{re.escape(between)}[^\W_])*")
