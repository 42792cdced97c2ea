"""Letters of other scripts that stand in for Latin ones.

Honest text in another script must not be changed, so letters are folded only where they cannot be its own: in a word
that also has Latin letters, and in a whole word of nothing but lookalikes that does not stand beside honest words.

The pairs are those of Unicode's confusables (Unicode Technical Standard 39), as `confusable-homoglyphs` ships them, and
the Latin small capitals.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from typing import Final, NamedTuple

from confusable_homoglyphs.confusables import confusables_data

from router.scan.normalise.edits import Edit

_LETTERS: Final = frozenset(string.ascii_letters)
_LATIN_IN_WORDS: Final = 0x250
_LATIN_EXTENDED: Final = range(0x1E00, 0x1F00)
_SMALL_CAPITALS: Final = (range(0x250, 0x2B0), range(0x1D00, 0x1D80), range(0xA720, 0xA800))
_SMALL_CAPITAL: Final = re.compile(r"LATIN LETTER SMALL CAPITAL ([A-Z])$")
_SHORTEST_WORD: Final = 3
_NEAR: Final = 64
_WORD: Final = re.compile(r"\w+")


class _Table(NamedTuple):
    """`sure`: lookalikes. `near`: those, and small letters whose capitals are lookalikes."""

    sure: Mapping[str, str]
    near: Mapping[str, str]
    mixed: re.Pattern[str]
    whole: re.Pattern[str]


def homoglyphs(text: str) -> list[Edit]:
    """The words whose letters pretend to be Latin."""
    table = _table()
    if table.near.keys().isdisjoint(set(text)):
        return []
    found = {word: table.near for word in _mixed(text, table)}
    for match in table.whole.finditer(text):
        if match.span() not in found and not _among_its_own(text, match.start(), match.end(), table.sure):
            found[match.span()] = table.sure
    return [edit for word in sorted(found) for edit in _folded(text, *word, found[word])]


def _mixed(text: str, table: _Table) -> Iterator[tuple[int, int]]:
    end = 0
    while (match := table.mixed.search(text, end)) is not None:
        start = match.start()
        while start > 0 and text[start - 1].isalnum():
            start -= 1
        end = match.end()
        while end < len(text) and text[end].isalnum():
            end += 1
        yield start, end


def _among_its_own(text: str, start: int, end: int, lookalikes: Mapping[str, str]) -> bool:
    """Whether the word before or after has a letter of another script that is no lookalike."""
    before = _WORD.findall(text[max(start - _NEAR, 0) : start])[-1:]
    after = _WORD.findall(text[end : end + _NEAR])[:1]
    return any(c > "\x7f" and c.isalpha() and c not in lookalikes for word in before + after for c in word)


def _folded(text: str, start: int, end: int, lookalikes: Mapping[str, str]) -> Iterator[Edit]:
    """Letter by letter, neighbours in one edit."""
    at = start
    while at < end:
        if text[at] not in lookalikes:
            at += 1
            continue
        first = at
        while at < end and text[at] in lookalikes:
            at += 1
        yield Edit(first, at, "".join(lookalikes[c] for c in text[first:at]), 1, 1)


@cache
def _table() -> _Table:
    sure: dict[str, str] = {}
    for character, others in confusables_data.items():
        if len(character) == 1 and _stands_in(character):
            targets = [other["c"] for other in others if other["c"] in _LETTERS]
            if targets:
                # The data has one shape for I and l.
                sure[character] = "I" if character.isupper() and targets[0] == "l" else targets[0]
    for code in chain(*_SMALL_CAPITALS):
        if (small := _SMALL_CAPITAL.match(unicodedata.name(chr(code), ""))) is not None:
            sure[chr(code)] = small[1].lower()
    capitals = {c.lower(): sure[c].lower() for c in sure if len(c.lower()) == 1 and c.isupper()}
    near = {**{c: plain for c, plain in capitals.items() if c > "\x7f" and _stands_in(c)}, **sure}
    these, those = re.escape("".join(sure)), re.escape("".join(near))
    return _Table(
        sure,
        near,
        re.compile(f"[A-Za-z][{those}]|[{those}][A-Za-z]"),
        re.compile(rf"(?<!\w)[{these}]{{{_SHORTEST_WORD},}}(?!\w)"),
    )


def _stands_in(character: str) -> bool:
    """Whether it is a letter that no language in Latin letters writes words with."""
    code = ord(character)
    if code < _LATIN_IN_WORDS or code in _LATIN_EXTENDED or not character.isalpha():
        return False
    return unicodedata.normalize("NFKC", character) == character
