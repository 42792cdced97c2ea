r"""Characters written as HTML entities (`&#105;`, `&lt;`) or as escapes of programs (`\x69`, `\u0069`), decoded once.

Honest text escapes what its format makes it: a bracket, a quote, a letter beyond ASCII. So what counts is an escape
that nobody needs (of a letter or digit of ASCII, of something invisible, of a foreign letter in a Latin word), a pair
of brackets, or several escapes in one word, whatever they are. `\x` often writes bytes that are no text: those of a
word count only if all of them are.

Source: the HTML standard (character references; `html` of the standard library knows it).
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import groupby
from typing import Final

from router.scan.normalise.edits import Edit

_ESCAPE: Final = re.compile(
    r"&(?:#[xX][0-9a-fA-F]{1,8}+;?|#[0-9]{1,9}+;?|[A-Za-z][A-Za-z0-9]{1,31}+;)"
    r"|\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\}"
    r"|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|x\{[0-9a-fA-F]{1,6}\})"
)
_RUN: Final = re.compile(f"(?:{_ESCAPE.pattern})+")
_NAMED: Final = re.compile(rb"&[A-Za-z][A-Za-z0-9]{1,31}+;")
_SIGNS: Final = (b"&#", b"\\u", b"\\U", b"\\x")
_LONGEST: Final = 34
_SEVERAL: Final = 3
_LATIN_IN_WORDS: Final = 0x250
_NEAR: Final = 64
_BRACKETS: Final = frozenset("<>")
_GAP: Final = re.compile(r"\s")
_TEXT: Final = frozenset("\t\n\r" + "".join(map(chr, range(0x20, 0x7F))))


def may_be_escaped(ascii_text: bytes) -> bool:
    """Whether it is worth looking. All that is not ASCII stands as `?`."""
    return any(sign in ascii_text for sign in _SIGNS) or (
        ascii_text.count(b"&") >= len(_BRACKETS) and _NAMED.search(ascii_text) is not None
    )


def escapes(text: str) -> list[Edit]:
    """The decoded characters, in order."""
    if not may_be_escaped(text.encode("ascii", "replace")):
        return []
    edits: list[Edit] = []
    word: list[Edit] = []
    for edit in _decoded(text):
        if word and (edit.start - word[-1].end > _NEAR or _GAP.search(text, word[-1].end, edit.start)):
            edits += _undone(text, word)
            word = []
        word.append(edit)
    return edits + _undone(text, word)


def inside_escape(text: str, point: int) -> bool:
    """Whether a cut there would part an escape."""
    start = max(point - _LONGEST, 0)
    first = max(text.rfind("&", start, point), text.rfind("\\", start, point))
    if first < 0:
        return False
    # The second half of a pair may be the nearer one.
    starts = (first, text.rfind("\\", start, first))
    return any((match := _ESCAPE.match(text, at)) is not None and match.end() > point for at in starts if at >= 0)


def _decoded(text: str) -> Iterator[Edit]:
    """Neighbours that are written alike in one edit."""
    for run in _RUN.finditer(text):
        found: list[str] = _ESCAPE.findall(run[0])
        if len(set(map(len, found))) == 1 and run[0].count(found[0][:2]) == len(found):
            yield from _alike(found, run.start())
            continue
        at = run.start()
        for (_, size), some in groupby(found, key=lambda escape: (escape[:2], len(escape))):
            same = list(some)
            yield from _alike(same, at)
            at += size * len(same)


def _alike(found: list[str], at: int) -> Iterator[Edit]:
    """Of escapes of one length, those that stand for something."""
    size, plain = len(found[0]), list(map(_character, found))
    if all(plain):
        yield Edit(at, at + size * len(found), "".join(plain), size, 1)
        return
    yield from (Edit(at + size * i, at + size * i + size, each, size, 1) for i, each in enumerate(plain) if each)


def _undone(text: str, word: list[Edit]) -> list[Edit]:
    """What of a word's escapes is worth undoing: all, or none; bytes that are no text are left out before."""
    others = [edit for edit in word if not text.startswith("\\x", edit.start)]
    if len(others) < len(word) and not all(_TEXT.issuperset(e.text) for e in word if text.startswith("\\x", e.start)):
        word = others
    characters = "".join(edit.text for edit in word)
    several = len(characters) >= _SEVERAL or set(characters) == _BRACKETS
    return word if several or any(_needless(text, edit) for edit in others) else []


def _needless(text: str, edit: Edit) -> bool:
    around = (text[edit.start - 1 : edit.start], text[edit.end : edit.end + 1])
    in_word = any(c.isascii() and c.isalpha() for c in around)
    return any(
        (c.isalnum() and (c.isascii() or (in_word and ord(c) >= _LATIN_IN_WORDS))) or unicodedata.category(c) == "Cf"
        for c in edit.text
    )


@lru_cache(maxsize=4096)
def _character(escape: str) -> str:
    """What an escape stands for, if that is one character of text, and takes no more bytes than the escape; else ""."""
    found = html.unescape(escape) if escape[0] == "&" else _of_program(escape)
    if len(found) != 1 or found == "\ufffd" or len(found.encode("utf-8", "replace")) > len(escape):
        return ""
    return "" if unicodedata.category(found) in ("Cs", "Cn") else found


def _of_program(escape: str) -> str:
    if escape.count("\\") == 2:
        high, low = int(escape[2:6], 16), int(escape[8:12], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
    code = int(escape[2:].strip("{}"), 16)
    return chr(code) if code <= 0x10FFFF else ""
