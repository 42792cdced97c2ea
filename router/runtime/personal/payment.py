"""Cards and accounts: the issuer's range and the check digits must be right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .checks import luhn, mod97
from .finding import CARD, IBAN, Cue, Finding, Seen, identifies
from .shadow import WORD, alone, chained, digits_of, expression

_CARD: Final = expression(
    r"[0-9]{12,19}"
    r"|[0-9]{4} [0-9]{4} [0-9]{4} [0-9]{4}(?: [0-9]{3})?|[0-9]{4}-[0-9]{4}-[0-9]{4}-[0-9]{4}(?:-[0-9]{3})?"
    r"|[0-9]{4} [0-9]{6} [0-9]{4,5}|[0-9]{4}-[0-9]{6}-[0-9]{4,5}"
)
_IBAN: Final = expression(r"[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]){11,30}", ignore_case=True)
_SAID: Final = Cue(r"card|visa|mastercard|amex|karte|carte|tarjeta|carta|kaart|karta|cartão|信用卡|カード")

_ISSUERS: Final = (
    *(("34", "34", (15,)), ("37", "37", (15,)), ("300", "305", (14,)), ("36", "36", (14,)), ("38", "39", (14, 16))),
    *(("4", "4", (16, 19)), ("51", "55", (16,)), ("2221", "2720", (16,)), ("2200", "2204", (16, 19))),
    *(("6011", "6011", (16, 19)), ("644", "649", (16, 19)), ("65", "65", (16, 19)), ("3528", "3589", (16, 19))),
    *(("62", "62", (16, 17, 18, 19)), ("60", "60", (16,)), ("81", "82", (16,)), ("5018", "5018", (16, 18, 19))),
    *(("5020", "5020", (16, 18, 19)), ("5038", "5038", (16, 18, 19)), ("5893", "5893", (16, 18, 19))),
    *(("6304", "6304", (16, 18, 19)), ("6759", "6763", (16, 18, 19))),
)
"""First and last prefix of a range, and the lengths that are issued in it."""

TEST_CARDS: Final = frozenset(
    {
        *("4111111111111111", "4242424242424242", "4012888888881881", "4000056655665556", "4000000000000002"),
        *("4917610000000000", "4444333322221111", "4000000000000000", "4263982640269299", "4005519200000004"),
        *("5555555555554444", "5200828282828210", "5105105105105100", "5454545454545454", "2223003122003222"),
        *("2222420000001113", "5431111111111111", "378282246310005", "371449635398431", "378734493671000"),
        *("343434343434343", "6011111111111117", "6011000990139424", "6011981111111113", "3056930009020004"),
        *("36227206271667", "30569309025904", "38520000023237", "3566002020360505", "3530111333300000"),
        *("6200000000000005", "6205500000000000004", "6759649826438453", "4007000000027", "4222222222222"),
    }
)
"""Numbers that payment providers publish for trying things out: nobody's cards."""

_LENGTHS: Final = {
    **dict.fromkeys(("NO",), 15),
    **dict.fromkeys(("BE", "BI"), 16),
    **dict.fromkeys(("DK", "FO", "FI", "GL", "NL", "SD"), 18),
    **dict.fromkeys(("MK", "SI"), 19),
    **dict.fromkeys(("AT", "BA", "EE", "KZ", "LT", "LU", "XK", "MN"), 20),
    **dict.fromkeys(("HR", "LV", "LI", "CH"), 21),
    **dict.fromkeys(("BH", "BG", "CR", "GE", "DE", "IE", "ME", "RS", "GB", "VA"), 22),
    **dict.fromkeys(("TL", "GI", "IQ", "IL", "AE", "OM", "SO"), 23),
    **dict.fromkeys(("AD", "CZ", "MD", "PK", "RO", "SA", "SK", "ES", "SE", "TN", "VG"), 24),
    **dict.fromkeys(("LY", "PT", "ST"), 25),
    **dict.fromkeys(("IS", "TR"), 26),
    **dict.fromkeys(("FR", "GR", "IT", "MC", "MR", "SM", "BF", "DJ"), 27),
    **dict.fromkeys(("AL", "AZ", "BY", "CY", "DO", "GT", "HU", "LB", "NI", "PL", "SV"), 28),
    **dict.fromkeys(("BR", "EG", "PS", "QA", "UA"), 29),
    **dict.fromkeys(("JO", "KW", "MU", "YE"), 30),
    **dict.fromkeys(("MT", "SC"), 31),
    **dict.fromkeys(("LC",), 32),
    **dict.fromkeys(("RU",), 33),
}
"""Lengths of IBANs by country (the registry of ISO 13616)."""


def cards(seen: Seen) -> Iterator[Finding]:
    """Card numbers in one run or in the groups that cards show: of a known issuer, or said to be one."""
    if not seen.has_digits:
        return
    for match in _CARD.finditer(seen.data):
        start, end = match.span()
        if not alone(seen.data, start, end) or chained(seen.data, start, end):
            continue
        digits = digits_of(seen.data[start:end])
        if digits in TEST_CARDS or not luhn(digits) or len(set(digits)) == 1:
            continue
        said = _SAID.before(seen, start)
        if not said and (not _issued(digits) or (end - start == len(digits) and identifies(seen, start))):
            continue  # one long number in ten passes the check
        if digits[0] not in "23456":
            continue
        yield Finding(start, end, CARD, "card")


def _issued(digits: str) -> bool:
    return any(low <= digits[: len(low)] <= high and len(digits) in lengths for low, high, lengths in _ISSUERS)


def ibans(seen: Seen) -> Iterator[Finding]:
    """Accounts: a country's length, and the remainder of 97."""
    if not seen.has_digits:
        return
    for match in _IBAN.finditer(seen.data):
        start = match.start()
        length = _LENGTHS.get(seen.data[start : start + 2].upper().decode("latin-1"))
        if length is None or (start > 0 and seen.data[start - 1] in WORD):
            continue
        end = _after(seen.data, start, length)
        if end is None or end > match.end() or (end < len(seen.data) and seen.data[end] in WORD):
            continue
        if chained(seen.data, start, end):
            continue  # a part of a UUID
        code = bytes(byte for byte in seen.data[start:end] if byte not in b" ").decode("latin-1").upper()
        if mod97(code[4:] + code[:4]) and sum(char.isdigit() for char in code) * 2 >= len(code) - 4:
            yield Finding(start, end, IBAN, "iban")


def _after(data: bytes, start: int, length: int) -> int | None:
    """Where `length` letters and digits from `start` on end."""
    place = start
    while place < len(data) and length:
        byte = data[place]
        length -= byte not in b" "
        place += 1
    return None if length else place
