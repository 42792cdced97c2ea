"""Text written as base64, hex or percent escapes, decoded once.

What does not decode to readable text stays: identifiers, digests, paths and keys are not text in disguise.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterator
from typing import Final

from router.scan.normalise.edits import Edit

_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_NO_SIGNS: Final = re.compile(r"[A-Za-z0-9]{16,}={0,2}")
_HEX: Final = re.compile(r"[0-9a-fA-F]{16,}")
_PAIRS: Final = re.compile(
    r"(?<![0-9a-zA-Z])[0-9a-fA-F]{2}(?P<between>[ ,:])(?:[0-9a-fA-F]{2}(?P=between)){5,}[0-9a-fA-F]{2}(?![0-9a-zA-Z])"
)
_ESCAPES: Final = re.compile(r"(?:\\x[0-9a-fA-F]{2}){4,}")
_PERCENT: Final = re.compile(r"(?:%[0-9a-fA-F]{2})+")
_LEAST_PERCENT: Final = 3
_NEAR: Final = 64
_URL_SAFE: Final = str.maketrans("-_", "+/")
_TASTE: Final = 24
_READABLE: Final = 0.7
_LEAST_LETTERS: Final = 8
_NO_CONTROLS: Final = bytes(code for code in range(256) if (code >= 32 and code != 127) or code in b"\t\n\r")
_RUNS: Final = bytes(65 if (chr(code).isalnum() and code < 128) or chr(code) in "+/_-" else 46 for code in range(256))
_DIGITS: Final = bytes(
    104 if chr(code) in "0123456789abcdefABCDEF" else 32 if chr(code) in " ,:" else 46 for code in range(256)
)


def may_be_encoded(ascii_text: bytes) -> bool:
    """Whether it is worth looking. All that is not ASCII stands as `?`."""
    return any(there(ascii_text) for there, _ in _WAYS)


def encoded(text: str) -> list[Edit]:
    """The decoded runs, in order."""
    data = text.encode("ascii", "replace")
    found = [edit for there, decoded in _WAYS if there(data) for edit in decoded(text)]
    found.sort()
    edits: list[Edit] = []
    for edit in found:
        if not edits or edit.start >= edits[-1].end:
            edits.append(edit)
    return edits


def _runs(text: str) -> Iterator[Edit]:
    for match in _BASE64.finditer(text):
        run, at = match[0], match.start()
        done = 0
        for edit in _hex(run, at):
            yield from _base64(run[done : edit.start - at], at + done)
            yield edit
            done = edit.end - at
        yield from _base64(run[done:], at + done)


def _hex(run: str, start: int) -> Iterator[Edit]:
    """Digits may follow a prefix, such as `0x`, and begin or end in the middle of a byte where the text is cut."""
    for match in _HEX.finditer(run):
        for phase in range(2):
            digits = match[0][phase:]
            digits = digits[: len(digits) // 2 * 2]
            if (plain := _readable(binascii.unhexlify(digits))) is not None:
                begin = start + match.start() + phase
                yield _edit(begin, begin + len(digits), plain, 2, 1)
                break


def _base64(run: str, start: int) -> Iterator[Edit]:
    """A run may have begun before the text that it holds: four ways to read it."""
    body = run.rstrip("=").translate(_URL_SAFE)
    for phase in range(4):
        if _readable(_decoded(body[phase : phase + _TASTE])) is None:
            continue
        if (plain := _readable(_decoded(body[phase:]))) is not None:
            yield _edit(start + phase, start + len(run), plain, 4, 3)
            return
    # A word before it may end in a character that base64 has, too: `text-`, `path/`.
    for piece in _NO_SIGNS.finditer(run):
        if len(piece[0]) < len(run):
            yield from _base64(piece[0], start + piece.start())


def _decoded(body: str) -> bytes:
    rest = len(body) % 4
    # One character over holds no byte.
    body = body[:-1] if rest == 1 else body + "=" * (-rest % 4)
    return binascii.a2b_base64(body)


def _pairs(text: str) -> Iterator[Edit]:
    for match in _PAIRS.finditer(text):
        digits = match[0].replace(match["between"], "")
        if (plain := _readable(binascii.unhexlify(digits))) is not None:
            yield _edit(match.start(), match.end(), plain, 3, 1)


def _escapes(text: str) -> Iterator[Edit]:
    for match in _ESCAPES.finditer(text):
        if (plain := _readable(binascii.unhexlify(match[0].replace("\\x", "")))) is not None:
            yield _edit(match.start(), match.end(), plain, 4, 1)


def _percent(text: str) -> Iterator[Edit]:
    """Escapes of one word or address, where there are several."""
    group: list[re.Match[str]] = []
    for match in _PERCENT.finditer(text):
        if group:
            between = text[group[-1].end() : match.start()]
            if len(between) > _NEAR or any(c.isspace() for c in between):
                yield from _unescaped(group)
                group = []
        group.append(match)
    yield from _unescaped(group)


def _unescaped(group: list[re.Match[str]]) -> Iterator[Edit]:
    if sum(len(match[0]) // 3 for match in group) < _LEAST_PERCENT:
        return
    for match in group:
        data = binascii.unhexlify(match[0].replace("%", ""))
        yield _edit(match.start(), match.end(), data.decode(errors="replace"), 3, 1)


def _edit(start: int, end: int, plain: str, taken: int, given: int) -> Edit:
    """A text of ASCII goes back to what it was written as bit by bit, any other as a whole."""
    return Edit(start, end, plain, taken, given) if plain.isascii() else Edit(start, end, plain)


def _readable(data: bytes) -> str | None:
    """The text that these bytes are, if a person could read it."""
    if data.translate(None, _NO_CONTROLS):
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        # A run may end, or be cut, inside its last character.
        if error.start < len(data) - 3:
            return None
        text = data[: error.start].decode()
    letters = sum(c.isalpha() or c == " " for c in text)
    if letters < (_LEAST_LETTERS if text.isascii() else _LEAST_LETTERS // 2) or letters < _READABLE * len(text):
        return None
    return text


_WAYS: Final[tuple[tuple[Callable[[bytes], bool], Callable[[str], Iterator[Edit]]], ...]] = (
    (lambda data: b"A" * 16 in data.translate(_RUNS), _runs),
    (lambda data: b"hh hh hh hh hh hh hh" in data.translate(_DIGITS), _pairs),
    (lambda data: b"\\x" in data, _escapes),
    (lambda data: data.count(b"%") >= _LEAST_PERCENT, _percent),
)
"""How each way of writing is noticed, and decoded."""
