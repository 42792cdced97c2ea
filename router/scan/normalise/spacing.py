"""Words written with something between their letters: `i g n o r e`, `i.g.n.o.r.e`, `i-g-n-o-r-e   t-h-i-s`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from router.scan.normalise.edits import Edit

_SPACES: Final = "".join(map(chr, (0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)))
_BETWEEN: Final = f" \t\n.,*|/~+_\u00b7\u2022{_SPACES}-"
_ALONE: Final = r"[^\W_](?![^\W_])"
_SPACED: Final = re.compile(
    rf"(?<![^\W_])[^\W_](?P<between>[{_BETWEEN}]{{1,2}}){_ALONE}(?:(?P=between){_ALONE})*"
    rf"(?:[{_BETWEEN}]{{2,5}}{_ALONE}(?:(?P=between){_ALONE})*)*"
)
_LEAST_LETTERS: Final = 4
_LEAST_DIGITS: Final = 9
_UNKNOWN: Final = 63
"""`?`, which stands for all that is not ASCII, may be a letter."""
_SHAPE: Final = bytes(
    97 if code == _UNKNOWN or chr(code).isalnum() else 32 if chr(code) in _BETWEEN else 46 for code in range(256)
)


def spacing(text: str) -> list[Edit]:
    """The words without what stands between their letters."""
    shape = text.encode("ascii", "replace").translate(_SHAPE)
    if b" a a a" not in shape and b"  a  a" not in shape and text.isascii():
        return []
    edits: list[Edit] = []
    for match in _SPACED.finditer(text):
        letters = sum(c.isalpha() for c in match[0])
        digits = sum(c.isdigit() for c in match[0])
        if letters >= _LEAST_LETTERS or letters + digits >= _LEAST_DIGITS:
            edits += _words(text, match.start(), match.end(), len(match["between"]))
    return edits


def _words(text: str, start: int, end: int, between: int) -> Iterator[Edit]:
    """One edit a word, and one a gap between words."""
    step = 1 + between
    sign = text[start + 1 : start + step]
    at = start
    while at < end:
        last = at
        while text[last + 1 : last + step] == sign and last + step < end and text[last + step] not in _BETWEEN:
            last += step
        if last > at:
            yield Edit(at, last + 1, text[at : last + 1 : step], step, 1)
        gap = last + 1
        at = gap
        while at < end and text[at] in _BETWEEN:
            at += 1
        if at > gap and at < end:
            yield Edit(gap, at, " ")
