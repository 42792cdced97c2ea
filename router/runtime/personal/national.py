"""Numbers that states give to persons, where their form and check digits can be proven.

A number whose check lets one in ten through counts only beside a word that says what it is (`cue`), or in the grouping
that only it has. US numbers have no check digit: their form is asked for instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from .checks import fiscal_code, is_date, luhn, mod11_10, verhoeff, weighted
from .finding import LICENSE, NATIONAL, Cue, Finding, Seen, identifies
from .shadow import alone, chained, expression, spaced

_NEVER_ISSUED: Final = frozenset({"078051120", "219099999", "457555462", "123456789", "111223333", "123121234"})
"""Printed in advertisements and examples."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """One country's number: its form, and whether what stands there is one.

    `valid` is given the letters and digits, in capitals. Where there is a `cue`, it must stand before the number,
    unless that is written as `grouped` says.
    """

    rule: str
    form: Any
    valid: Callable[[str], bool]
    cue: Cue | None = None
    grouped: Any = None
    label: str = NATIONAL


def numbers(seen: Seen) -> Iterator[Finding]:
    """Every kind."""
    if not seen.has_digits:
        return
    for kind in _KINDS:
        if kind.cue is not None and kind.grouped is None and not kind.cue.anywhere(seen):
            continue
        for match in kind.form.finditer(seen.data):
            start, end = match.span()
            if not alone(seen.data, start, end) or chained(seen.data, start, end):
                continue
            written = seen.data[start:end].decode("latin-1").upper()
            if kind.valid("".join(char for char in written if char.isalnum())) and _meant(kind, seen, start, end):
                yield Finding(start, end, kind.label, kind.rule)


def _meant(kind: _Kind, seen: Seen, start: int, end: int) -> bool:
    if kind.cue is None or kind.cue.before(seen, start):
        return True
    if kind.grouped is None or not kind.grouped.fullmatch(seen.data[start:end]):
        return False
    return not identifies(seen, start) and not spaced(seen.data, start, end)


def _ssn(number: str) -> bool:
    area, group, serial = number[:3], number[3:5], number[5:]
    if group == "00" or serial == "0000" or area in ("000", "666") or number in _NEVER_ISSUED:
        return False
    individual = 50 <= int(group) <= 65 or 70 <= int(group) <= 88 or 90 <= int(group) <= 92 or int(group) >= 94
    return area < "900" or individual


def _nino(number: str) -> bool:
    first, second = number[0], number[1]
    never = ("BG", "GB", "KN", "NK", "NT", "TN", "ZZ")
    return first not in "DFIQUV" and second not in "DFIQUVO" and number[:2] not in never


def _steuer_id(number: str) -> bool:
    """Of the first ten digits one occurs twice or thrice, and the others once at most."""
    often = sorted(Counter(number[:10]).values(), reverse=True)
    return number[0] != "0" and often[0] in (2, 3) and often[1] == 1 and mod11_10(number)


def _nir(number: str) -> bool:
    month = int(number[3:5])
    body = number[:13].replace("2A", "19").replace("2B", "18")
    return (1 <= month <= 12 or 20 <= month <= 42) and body.isdigit() and 97 - int(body) % 97 == int(number[13:])


def _dni(number: str) -> bool:
    digits = number[:-1].translate(str.maketrans("XYZ", "012"))
    return len(set(digits)) > 1 and "TRWAGMYFPDXBNJZSQVHLCKE"[int(digits) % 23] == number[-1]


def _bsn(number: str) -> bool:
    return len(set(number)) > 1 and weighted(number, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0


def _resident(number: str) -> bool:
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    date = is_date(int(number[6:10]), int(number[10:12]), int(number[12:14]))
    return date and "10X98765432"[weighted(number[:17], weights) % 11] == number[17]


def _aadhaar(number: str) -> bool:
    return number[0] not in "01" and number != number[::-1] and verhoeff(number)


def _cpf(number: str) -> bool:
    if len(set(number)) == 1:
        return False
    first = weighted(number[:9], tuple(range(10, 1, -1))) * 10 % 11 % 10
    second = weighted(number[:10], tuple(range(11, 1, -1))) * 10 % 11 % 10
    return number[9:] == f"{first}{second}"


def _pesel(number: str) -> bool:
    month = int(number[2:4])
    check = weighted(number[:10], (1, 3, 7, 9, 1, 3, 7, 9, 1, 3))
    return is_date(2000, month % 20 or 99, int(number[4:6])) and (10 - check % 10) % 10 == int(number[10])


def _personnummer(number: str) -> bool:
    short = number[-10:]
    return is_date(2000, int(short[2:4]), int(short[4:6])) and luhn(short)


def _sin(number: str) -> bool:
    return number[0] not in "08" and len(set(number)) > 2 and luhn(number)


def _document(number: str) -> bool:
    return sum(char.isdigit() for char in number) >= 5


_KINDS: Final = (
    _Kind(
        "us_ssn",
        expression(r"[0-9]{3}-[0-9]{2}-[0-9]{4}|[0-9]{3} [0-9]{2} [0-9]{4}|[0-9]{9}"),
        _ssn,
        Cue(r"\bssn\b|social.?sec|\bitin\b|taxpayer"),
        expression(r"[0-9]{3}-[0-9]{2}-[0-9]{4}"),
    ),
    _Kind(
        "uk_nino",
        expression(r"[A-Za-z]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-Da-d]"),
        _nino,
        Cue(r"\bnino\b|\bni\b|national insurance"),
        expression(r"[A-Z]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]"),
    ),
    _Kind(
        "de_steuer_id",
        expression(r"[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{3}"),
        _steuer_id,
        Cue(r"steuer|\bid-?nr|\btin\b|\btax"),
    ),
    _Kind(
        "fr_nir",
        expression(r"[12] ?[0-9]{2} ?[0-9]{2} ?(?:[0-9]{2}|2[ABab]) ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}"),
        _nir,
        Cue(r"s.cu(?:rit.)? ?(?:sociale)?|\bnir\b|\binsee\b|num.ro|\bss\b"),
        expression(r"[12] [0-9]{2} [0-9]{2} (?:[0-9]{2}|2[ABab]) [0-9]{3} [0-9]{3} [0-9]{2}"),
    ),
    _Kind(
        "es_dni",
        expression(r"[0-9]{8}[ -]?[A-HJ-NP-TV-Za-hj-np-tv-z]|[XYZxyz][ -]?[0-9]{7}[ -]?[A-HJ-NP-TV-Za-hj-np-tv-z]"),
        _dni,
        Cue(r"\bdni\b|\bnif\b|\bnie\b|identidad|identity"),
        expression(r"[0-9]{8}-?[G-HJ-NP-TV-Z]|[XYZ]-?[0-9]{7}-?[A-HJ-NP-TV-Z]"),
    ),
    _Kind(
        "it_codice_fiscale",
        expression(
            r"[A-Za-z]{6}[0-9LMNPQRSTUVlmnpqrstuv]{2}[A-Ea-eHhLlMmPpR-Tr-t][0-9LMNPQRSTUVlmnpqrstuv]{2}"
            r"[A-Za-z][0-9LMNPQRSTUVlmnpqrstuv]{3}[A-Za-z]"
        ),
        fiscal_code,
    ),
    _Kind(
        "nl_bsn",
        expression(r"[0-9]{9}|[0-9]{4}\.[0-9]{2}\.[0-9]{3}"),
        _bsn,
        Cue(r"\bbsn\b|burgerservice|sofi-?n"),
    ),
    _Kind("cn_resident_id", expression(r"[1-9][0-9]{16}[0-9Xx]"), _resident),
    _Kind(
        "in_aadhaar",
        expression(r"[2-9][0-9]{3}[ -]?[0-9]{4}[ -]?[0-9]{4}"),
        _aadhaar,
        Cue(r"aadha?ar|\buid(?:ai)?\b|आधार"),
        expression(r"[2-9][0-9]{3} [0-9]{4} [0-9]{4}"),
    ),
    _Kind(
        "br_cpf",
        expression(r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}|[0-9]{11}"),
        _cpf,
        Cue(r"\bcpf\b"),
        expression(r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}"),
    ),
    _Kind("pl_pesel", expression(r"[0-9]{11}"), _pesel, Cue(r"pesel")),
    _Kind(
        "se_personnummer",
        expression(r"(?:19|20)?[0-9]{6}[-+][0-9]{4}|(?:19|20)?[0-9]{10}"),
        _personnummer,
        Cue(r"person(?:nummer|al id)|samordnings"),
        expression(r"(?:19|20)?[0-9]{6}[-+][0-9]{4}"),
    ),
    _Kind(
        "ca_sin",
        expression(r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{3}"),
        _sin,
        Cue(r"\bsin\b|social insurance|assurance sociale|\bnas\b"),
    ),
    _Kind(
        "us_driver_license",
        expression(r"[A-Za-z]?[0-9][0-9-]{5,16}[0-9]"),
        _document,
        Cue(r"driver.{0,2} licen[cs]e|driving licen[cs]e|\bdl(?: ?(?:no|number|#))"),
        label=LICENSE,
    ),
    _Kind(
        "document_number",
        expression(r"[A-Za-z]{0,3}[0-9]{5,12}[A-Za-z]?"),
        _document,
        Cue(
            r"passport|reisepass|pasaporte|passeport|paszport|护照|パスポート|\bmrn\b|medical record|personalausweis"
            r"|(?:patient|national|identity card|id card|health insurance|medicare|voter|residence permit)"
            r".?s?[ _-]?(?:number|num|no|nr|id|#)"
        ),
    ),
)
