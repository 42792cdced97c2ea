"""Characters that look like others, or like nothing at all: compatibility forms, invisible ones, stacked marks.

Zero-width and bidirectional controls go. A joiner stays where writing needs it: in an emoji, and in scripts that join
their letters. Invisible text (tag characters, bytes in variation selectors) is spelled out, because a large model
reads it.

Compatibility forms of letters and digits become plain (NFKC), unless the plain form would be more than twice as long.
Spaces, punctuation and a few signs of good typography stay: they say nothing else in plain form, and whole languages
write with them.

Source: Unicode Standard Annex 15 (normalisation forms), Annex 9 (bidirectional controls).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from itertools import groupby
from typing import Final, NamedTuple

from router.scan.normalise.edits import Edit

_TAGS: Final = range(0xE0020, 0xE007F)
_SELECTORS: Final = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))
_JOINERS: Final = "\u200c\u200d"
_SPELLED: Final = frozenset(
    "\x85\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
"""Format and control characters that are seen."""
_FILLERS: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")
_HANGUL_LETTERS: Final = range(0x3131, 0x318F)
_TYPOGRAPHY: Final = frozenset("\u00aa\u00b2\u00b3\u00b5\u00b9\u00ba\u00bc\u00bd\u00be\u2103\u2109\u2116\u2120\u2122")
_BOXED: Final = re.compile(r"NEGATIVE (?:CIRCLED|SQUARED) LATIN CAPITAL LETTER ([A-Z])$")
_CONTROLS: Final = re.compile(r"(?<=\w)[\x00-\x08\x0e-\x1f\x7f]+(?=\w)")
_NO_CONTROLS: Final = bytes(code for code in range(256) if not _CONTROLS.search(f"a{chr(code)}a"))
_JAMO: Final = "\u1100-\u11ff"
_OVERLAYS: Final = frozenset("\u0334\u0335\u0336\u0337\u0338")
_MANY_MARKS: Final = 3
_LAST_WITHOUT_JOINING: Final = 0x530
"""Latin, Greek and Cyrillic end here: their letters are never joined by invisible characters."""
_HIDDEN_BYTES: Final = 4


class _Kind(Enum):
    PLAIN = 0
    GONE = 1
    JOINER = 2
    SELECTOR = 3
    OTHER = 4


class _Character(NamedTuple):
    kind: _Kind
    text: str


_PLAIN: Final = _Character(_Kind.PLAIN, "")
_GONE: Final = _Character(_Kind.GONE, "")


def may_be_controls(ascii_text: bytes) -> bool:
    """Whether it is worth looking."""
    return bool(ascii_text.translate(None, _NO_CONTROLS))


def controls(text: str) -> list[Edit]:
    """Control characters inside a word go; elsewhere they may mean something."""
    if not may_be_controls(text.encode("ascii", "replace")):
        return []
    return [Edit(match.start(), match.end(), "") for match in _CONTROLS.finditer(text)]


def characters(text: str) -> list[Edit]:
    """What a text that is not all ASCII is plainly written as, one character at a time."""
    special = "".join(sorted(c for c in set(text) if c > "\x7f" and _character(c) is not _PLAIN))
    edits = controls(text)
    if special:
        for match in _class(special, "+").finditer(text):
            start, end = match.span()
            if end - start == 1 and _character(text[start]) is _GONE:
                edits.append(Edit(start, end, ""))
            else:
                edits += _run(text, start, end)
        edits.sort()
    return edits


def composed(text: str) -> list[Edit]:
    """Letters and their marks written as one (NFC); a pile of marks, or one drawn through the letter, goes."""
    marks = "".join(sorted(c for c in set(text) if c > "\u02ff" and unicodedata.combining(c)))
    if unicodedata.is_normalized("NFC", text) and not marks:
        return []
    return [edit for match in _sequences(marks).finditer(text) if (edit := _sequence(match)) is not None]


@lru_cache(maxsize=4096)
def _character(character: str) -> _Character:
    code = ord(character)
    if code in _TAGS:
        return _Character(_Kind.OTHER, chr(code - 0xE0000))
    if any(code in selectors for selectors in _SELECTORS):
        return _Character(_Kind.SELECTOR, "")
    if character in _JOINERS:
        return _Character(_Kind.JOINER, "")
    if (unicodedata.category(character) in ("Cf", "Cc") and character not in _SPELLED) or character in _FILLERS:
        return _GONE
    plain = unicodedata.normalize("NFKC", character)
    if plain == character and (boxed := _BOXED.match(unicodedata.name(character, ""))):
        plain = boxed[1]
    if plain == character or code in _HANGUL_LETTERS or _grows(character, plain):
        return _PLAIN
    same = character in _TYPOGRAPHY or not any(c.isalnum() or unicodedata.combining(c) for c in plain)
    return _PLAIN if same else _Character(_Kind.OTHER, plain)


def _grows(before: str, after: str) -> bool:
    return len(after.encode("utf-8", "surrogatepass")) > 2 * len(before.encode("utf-8", "surrogatepass"))


def _run(text: str, start: int, end: int) -> Iterator[Edit]:
    """The edits of neighbouring special characters."""
    for (kind, simple), group in groupby(text[start:end], key=_sort_of):
        here, start = start, start + len(list(group))
        if kind is _Kind.OTHER and simple:
            yield Edit(here, start, "".join(_character(c).text for c in text[here:start]), 1, 1)
        elif kind is _Kind.OTHER:
            yield from (Edit(at, at + 1, _character(text[at]).text) for at in range(here, start))
        elif kind is _Kind.SELECTOR and start - here >= _HIDDEN_BYTES:
            yield Edit(here, start, _hidden(text[here:start]))
        elif kind is _Kind.GONE or not _needed(text, here, start):
            yield Edit(here, start, "")


def _sort_of(character: str) -> tuple[_Kind, bool]:
    kind, plain = _character(character)
    return kind, len(plain) == 1


def _needed(text: str, start: int, end: int) -> bool:
    """Whether one joiner or selector between these places belongs to how the characters around it are written."""
    if end - start > 1:
        return False
    before, after = text[start - 1 : start], text[end : end + 1]
    if after == "\u20e3":
        return True
    return not any(c.isalnum() and ord(c) < _LAST_WITHOUT_JOINING for c in (before, after) if c)


def _hidden(selectors: str) -> str:
    """The text in a run of variation selectors, which can stand for the 256 bytes; nothing if it is none."""
    codes = (ord(c) for c in selectors)
    data = bytes(code - 0xFE00 if code < 0xFE10 else code - 0xE0100 + 16 for code in codes)
    try:
        found = data.decode()
    except UnicodeDecodeError:
        return ""
    return found if found.isprintable() else ""


@lru_cache(maxsize=256)
def _class(characters: str, more: str) -> re.Pattern[str]:
    return re.compile(f"[{re.escape(characters)}]{more}")


@lru_cache(maxsize=256)
def _sequences(marks: str) -> re.Pattern[str]:
    """A character with its marks, or syllables in pieces."""
    if not marks:
        return re.compile(f"[{_JAMO}]+")
    escaped = re.escape(marks)
    return re.compile(f"[^{escaped}][{escaped}]+|[{_JAMO}]+")


def _sequence(match: re.Match[str]) -> Edit | None:
    text = match[0]
    base, marks = text[0], text[1:]
    piled = base.isascii() and base.isalnum() and (len(marks) >= _MANY_MARKS or not _OVERLAYS.isdisjoint(marks))
    plain = base if piled else unicodedata.normalize("NFC", text)
    return None if plain == text or _grows(text, plain) else Edit(match.start(), match.end(), plain)
