"""Telephone numbers, valid by the numbering plans of `phonenumbers`.

Ten digits alone are a telephone number in some country, whatever they were meant as. So a number counts if it is
international (`+`), if it is grouped exactly as its country writes it with the area's parts, or if a word before it
says that one can be called there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import phonenumbers

from .finding import PHONE, Cue, Finding, Seen, identifies
from .shadow import WORD, alone, chained, digits_of, expression

_INTERNATIONAL: Final = expression(r"\+\(?[0-9]{1,4}\)?(?:[ ./()-]{0,2}[0-9]{1,12}){1,7}")
_AMERICAN: Final = expression(
    r"(?:1[ .-])?(?:\([2-9][0-9]{2}\) ?[2-9][0-9]{2}[ .-][0-9]{4}|[2-9][0-9]{2}-[2-9][0-9]{2}-[0-9]{4}"
    r"|[2-9][0-9]{2}\.[2-9][0-9]{2}\.[0-9]{4}|[2-9][0-9]{2} [2-9][0-9]{2}[ -][0-9]{4})"
)
_AMERICAN_SHAPE: Final = expression(r"(?:1[ .-])?(?:\([0-9]{3}\) ?|[0-9]{3}[ .-])[0-9]{3}[ .-][0-9]{4}")
_TRUNK: Final = expression(r"\(?0[0-9]{1,5}\)?(?:[ /-][0-9]{2,8}){1,6}")
_ANY: Final = expression(r"\(?[0-9](?:[ ./()-]{0,2}[0-9]){5,14}")
_EXTENSION: Final = expression(r" ?(?:x|ext\.?) ?[0-9]{1,7}", ignore_case=True)
_GROUP: Final = expression(r"[0-9]+")
_OTHER: Final = expression(
    r"[0-9]{4}[-./][0-9]{1,2}[-./][0-9]{1,2}.*|[0-9]{1,2}[-./][0-9]{1,2}[-./][0-9]{2,4}(?: .*)?|[0-9]+\.[0-9]+"
)

_WORDS: Final = (
    r"\b(?:call|phone|phones|telephone|tel|mobile|cellphone|ring|text (?:me|us|her|him)|sms|whatsapp|fax|dial|reach"
    r"|contact|hotline|handy|telefon|telefonnummer|rufnummer|mobil|anrufen|t.l.phone|appel\w*|tel.fono|m.vil"
    r"|ll[aá]m\w*|cellulare|chiam\w*|telefoon|mobiel|telefonu|kom.rk\w*|zadzwo.|telefone|celular|ligue)s?\b"
    r"|(?:phone|mobile|cell|tel|fax)(?:_?(?:no|number|nr))?[\"']?\s?[:=]|电话|手机|電話|携帯|전화|휴대폰|тел|позвон|फ़ोन|هاتف"
)
_CALL: Final = Cue(_WORDS)
_TRUNK_REGIONS: Final = ("GB", "FR", "DE", "NL", "IT", "AU", "JP", "KR", "CH", "AT", "BE", "SE", "IN", "CN", "ZA", "TR")
_BY_LENGTH: Final = {
    8: ("NO", "DK", "SG", "HK"),
    9: ("ES", "PL", "PT", "FR", "CZ", "UA"),
    10: ("US", "IN", "IT", "BR", "MX"),
    11: ("CN", "BR", "US", "DE", "RU"),
    12: ("DE", "AT"),
    13: ("AT",),
}
"""Whose numbers without a leading zero have so many digits."""
_TRUNKS: Final = {"US": "1", "RU": "8"}


def phones(seen: Seen) -> Iterator[Finding]:
    """Telephone numbers; one may be found twice."""
    if not seen.has_digits:
        return
    yield from _international(seen)
    for match in _AMERICAN.finditer(seen.data):
        start, end = match.span()
        last = _with_extension(seen.data, end)
        if _whole(seen, start, last) and _valid(digits_of(seen.data[start:end]), "US"):
            yield Finding(start, last, PHONE, "phone")
    for match in _TRUNK.finditer(seen.data):
        start, end = match.span()
        if _whole(seen, start, end) and _grouped(seen, start, end):
            yield Finding(start, end, PHONE, "phone")
    if _CALL.anywhere(seen):
        yield from _said(seen)


def _international(seen: Seen) -> Iterator[Finding]:
    if b"+" not in seen.data:
        return
    for match in _INTERNATIONAL.finditer(seen.data):
        start = match.start()
        if start > 0 and seen.data[start - 1] in WORD:
            continue  # a sum
        said = _CALL.before(seen, start)
        for end in _ends(seen.data, *match.span()):
            # A zero in brackets is dialled at home only.
            digits = digits_of(seen.data[start:end].replace(b"(0)", b""))
            last = _with_extension(seen.data, end)
            if alone(seen.data, start, last) and 7 <= len(digits) <= 15 and _international_number(digits, said):
                yield Finding(start, last, PHONE, "phone")
                break


def _said(seen: Seen) -> Iterator[Finding]:
    """Numbers after a word for calling."""
    for match in _ANY.finditer(seen.data):
        start, last = match.span()
        if not (start == 0 or seen.data[start - 1] not in WORD) or not _CALL.before(seen, start):
            continue
        if (start > 0 and seen.data[start - 1] in b"+-.") or identifies(seen, start):
            continue
        for end in _ends(seen.data, start, last):
            digits = digits_of(seen.data[start:end])
            last = _with_extension(seen.data, end)
            # Three, three and four digits after a word for calling are meant as one, even if mistyped.
            meant = _AMERICAN_SHAPE.fullmatch(seen.data[start:end]) or any(
                _valid(digits, at) for at in _regions(digits)
            )
            if meant and _whole(seen, start, last):
                yield Finding(start, last, PHONE, "phone")
                break


def _with_extension(data: bytes, end: int) -> int:
    """Where the number ends with what is dialled after it."""
    match = _EXTENSION.match(data[end : end + 16])
    return end + match.end() if match else end


def _ends(data: bytes, start: int, end: int) -> list[int]:
    """Where it may end: after its last group, or up to three groups before, at a space."""
    ends = [end]
    for match in reversed(list(_GROUP.finditer(data[start:end]))[:-1]):
        if len(ends) > 3:
            break
        place = start + match.end()
        if data[place] in b" ":
            ends.append(place)
    return ends


def _regions(digits: str) -> tuple[str, ...]:
    if digits.startswith("0"):
        return _TRUNK_REGIONS if 8 <= len(digits) <= 13 else ()
    return _BY_LENGTH.get(len(digits), ())


def _whole(seen: Seen, start: int, end: int) -> bool:
    """Whether it is all of a number, and neither a date nor a fraction."""
    data = seen.data
    if not alone(data, start, end) or chained(data, start, end) or _OTHER.fullmatch(data[start:end]):
        return False
    return not (start > 0 and data[start - 1] in b"/=" and data[start - 2 : start - 1] not in (b"", b" "))


def _grouped(seen: Seen, start: int, end: int) -> bool:
    """Whether the groups are those in which one of the countries writes it, three or more, or an area set apart."""
    data = seen.data[start:end]
    groups = _groups(data)
    if (len(groups) < 3 and b"(" not in data and b"/" not in data) or not 9 <= sum(map(len, groups)) <= 13:
        return False
    steps = {int(after) - int(before) for before, after in pairwise(groups)}
    if identifies(seen, start) or (len(groups) > 2 and len(steps) == 1):
        return False  # `05 06 07 08 09` counts
    for region in _TRUNK_REGIONS:
        number = _national(b"".join(groups).decode(), region)
        if phonenumbers.is_valid_number_for_region(number, region):
            written = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
            if _groups(written.encode("ascii", "replace")) == groups:
                return True
    return False


def _groups(data: bytes) -> list[bytes]:
    return [match.group() for match in _GROUP.finditer(data)]


def _valid(digits: str, region: str) -> bool:
    return bool(phonenumbers.is_valid_number_for_region(_national(digits, region), region))


def _national(digits: str, region: str) -> phonenumbers.PhoneNumber:
    """A number as its own country dials it; without the digit that only says that an area follows."""
    if region == "IT":  # where the zero belongs to the area
        return phonenumbers.PhoneNumber(39, int(digits), italian_leading_zero=digits.startswith("0"))
    trunk = _TRUNKS.get(region, "0")
    if digits.startswith(trunk) and (trunk == "0" or len(digits) == 11):
        digits = digits[1:]
    return phonenumbers.PhoneNumber(phonenumbers.country_code_for_region(region), int(digits))


def _international_number(digits: str, said: bool) -> bool:
    """Whether there is such a number; where it is `said` to be one, its length is enough."""
    try:
        number = phonenumbers.parse(f"+{digits}")
    except phonenumbers.NumberParseException:
        return False
    return bool(phonenumbers.is_valid_number(number) or (said and phonenumbers.is_possible_number(number)))
