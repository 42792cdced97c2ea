"""Check digits of numbers that are given to persons, accounts and cards. All take digits (and capitals) only."""

from __future__ import annotations

from datetime import date

_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
_DIHEDRAL = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9),
    (1, 2, 3, 4, 0, 6, 7, 8, 9, 5),
    (2, 3, 4, 0, 1, 7, 8, 9, 5, 6),
    (3, 4, 0, 1, 2, 8, 9, 5, 6, 7),
    (4, 0, 1, 2, 3, 9, 5, 6, 7, 8),
    (5, 9, 8, 7, 6, 0, 4, 3, 2, 1),
    (6, 5, 9, 8, 7, 1, 0, 4, 3, 2),
    (7, 6, 5, 9, 8, 2, 1, 0, 4, 3),
    (8, 7, 6, 5, 9, 3, 2, 1, 0, 4),
    (9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
)
_PERMUTED = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9),
    (1, 5, 7, 6, 2, 8, 3, 0, 9, 4),
    (5, 8, 0, 3, 7, 9, 6, 1, 4, 2),
    (8, 9, 1, 6, 0, 4, 3, 5, 2, 7),
    (9, 4, 5, 3, 1, 2, 6, 8, 7, 0),
    (4, 2, 8, 6, 5, 7, 3, 9, 0, 1),
    (2, 7, 9, 3, 8, 0, 6, 4, 1, 5),
    (7, 0, 4, 6, 9, 1, 3, 2, 5, 8),
)
_FISCAL_ODD = {
    **dict(zip("0123456789", (1, 0, 5, 7, 9, 13, 15, 17, 19, 21), strict=True)),
    **dict(
        zip(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
            (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
            strict=True,
        )
    ),
}


def luhn(digits: str) -> bool:
    """Cards, and numbers of several countries (ISO/IEC 7812-1)."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        total += _DOUBLED[int(digit)] if place % 2 else int(digit)
    return total % 10 == 0


def verhoeff(digits: str) -> bool:
    """Aadhaar."""
    state = 0
    for place, digit in enumerate(reversed(digits)):
        state = _DIHEDRAL[state][_PERMUTED[place % 8][int(digit)]]
    return state == 0


def mod97(text: str) -> bool:
    """IBANs, the country and check digits already moved to the end (ISO 7064)."""
    return int("".join(str(int(char, 36)) for char in text)) % 97 == 1


def mod11_10(digits: str) -> bool:
    """German tax numbers (ISO 7064, MOD 11,10)."""
    product = 10
    for digit in digits[:-1]:
        product = ((int(digit) + product) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == int(digits[-1])


def weighted(digits: str, weights: tuple[int, ...]) -> int:
    """The sum of digits times weights."""
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=True))


def fiscal_code(code: str) -> bool:
    """The last letter of an Italian codice fiscale."""
    total = 0
    for place, char in enumerate(code[:-1]):
        even = int(char, 36) if char.isdigit() else int(char, 36) - 10
        total += even if place % 2 else _FISCAL_ODD[char]
    return chr(ord("A") + total % 26) == code[-1]


def is_date(year: int, month: int, day: int) -> bool:
    """Whether there is such a day."""
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True
