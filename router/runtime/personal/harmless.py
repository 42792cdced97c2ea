"""Identifiers that a model takes for names, dates or addresses of persons, and that are nobody's.

Hashes, UUIDs, long numbers, timestamps, versions, colours, MAC and special addresses, published test cards, names in
code, and web addresses. What a rule is certain of is looked for first: this only overrules a model.
"""

from __future__ import annotations

from typing import Final

from .checks import is_date
from .finding import NAMES, Seen
from .shadow import DIGITS, WORD, expression

_IDENTIFIER: Final = expression(
    # In this order, for the first that fits a place is taken.
    r"(?:https?|wss?|ftp|file|s3|gs|git|ssh|redis|postgres(?:ql)?|mysql|mongodb(?:\+srv)?|amqp)://[^\s\"'<>]+"
    r"|[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"
    r"|[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5,31}"
    r"|[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{0,4}){3,7}"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
    r"|[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?"
    r"|[vV]?[0-9]{1,6}(?:\.[0-9]{1,6}){2,5}(?:[-+][0-9A-Za-z.-]{1,40})?"
    r"|#[0-9A-Fa-f]{3,8}|0[xX][0-9A-Fa-f]+"
    r"|[0-9]{4}[ -][0-9]{4}[ -][0-9]{4}[ -][0-9]{4}"
    r"|[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9.-]+(?::[A-Za-z0-9._~-]*/[A-Za-z0-9._/~-]+)?"
    r"|[A-Za-z-]*[0-9_$][A-Za-z0-9_$-]*|[a-z]{3,}[A-Z][A-Za-z]*|[a-z]+\("
)

_NAMED: Final = expression(rf"(?i)\b(?:{NAMES})(?: (?:no|nr|number|id|code|num))?\.?[ :=#]{{1,3}}$")
_LONGEST_NAME: Final = 32

Region = tuple[int, int]


def harmless(seen: Seen) -> list[Region]:
    """Stretches in text order, none overlapping another, in code points. What an identifier is called belongs to it."""
    data = seen.data
    found: list[Region] = []
    for match in _IDENTIFIER.finditer(data):
        start, end = match.span()
        if _is_identifier(data, start, end):
            before = max(found[-1][1] if found else 0, start - _LONGEST_NAME)
            name = _NAMED.search(data[before:start])
            found.append((start if name is None else before + name.start(), end))
    return found


def _is_identifier(data: bytes, start: int, end: int) -> bool:
    if end < len(data) and data[end] in WORD and data[end - 1] in WORD:
        return False
    if start > 0 and data[start - 1] in WORD:
        return False
    word = data[start:end]
    if not word.translate(None, b"-_$").isalnum():
        return not _day(word)  # every form but the last two has a sign of its own
    # What is only emphasised (`_Maria_`) is no name in code.
    signed = b"_" in word.strip(b"_") or word[:1] == b"$" or word[:2].lower() == b"0x"
    return signed or _camel(word) or (_coded(word) and not _day(word))


def _day(word: bytes) -> bool:
    """Whether it can be a date: `12.03.1985`, `12.3.85`, `1985.03.12` or `19850312`."""
    parts = word.split(b".") if b"." in word else [word[:4], word[4:6], word[6:]]
    if len(parts) != 3 or not all(part.isdigit() for part in parts) or (b"." not in word and len(word) != 8):
        return False
    if len(parts[0]) == 4:
        parts.reverse()
    day, month, year = map(int, parts)
    return len(parts[2]) in (2, 4) and any(is_date(1900 + year % 100, *pair) for pair in ((month, day), (day, month)))


def _camel(word: bytes) -> bool:
    return word.isalpha() and word[:3].islower() and not word.islower()


def _coded(word: bytes) -> bool:
    """A word with so many digits that it is one for machines: `3f78685`, `INV-2024-0017`, `4155550134`."""
    digits = sum(byte in DIGITS for byte in word)
    letters = sum(word[place : place + 1].isalpha() for place in range(len(word)))
    if not digits:
        return False
    if not letters:
        parts = word.split(b"-")
        return (len(parts) == 1 and digits >= 7) or len(parts) > 3 or digits > 12
    if digits + letters >= 7 and all(byte in b"0123456789abcdefABCDEF-" for byte in word):
        return digits >= 2
    return digits + letters >= 8 and digits >= 2
