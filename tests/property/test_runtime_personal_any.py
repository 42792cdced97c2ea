"""Recognisers over any text: offsets are places in it, what is found is whole, and neighbours change nothing."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.runtime.personal.checks import luhn, mod11_10, verhoeff
from router.runtime.personal.finding import LABELS, Seen
from router.runtime.personal.harmless import harmless
from router.runtime.personal.reading import read_personal
from router.runtime.personal.rules import recognise
from router.runtime.personal.shadow import shadow

PIECES = (
    *(
        "bob@firma.de",
        "4539578763621486",
        "4539 5787 6362 1486",
        "DE89 3704 0044 0532 0130 00",
        "415-555-0134",
        "93.184.216.34",
    ),
    *(
        "+48 600 123 456",
        "529.982.247-25",
        "password: hunter22",
        "call ",
        "1.2.3.4",
        "3f786850e3",
        "id ",
        "٣",
        "é",
        "中",
        "😀",
        "e\u0301",
    ),
    *(" ", "\n", ".", ",", "-", ":", "/", "@", "_", "0", "a", "(", "\u200b", "https://", "x_y", "2024-01-31"),
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=24).map("".join) | st.text(max_size=200)
SCRIPTS = tuple("".join(chr(zero + digit) for digit in range(10)) for zero in (0x660, 0x966, 0xFF10, 0x1D7D8))


@given(TEXTS)
def test_what_is_found_is_in_the_text_in_order_and_apart(text: str) -> None:
    findings = recognise(Seen(text))
    assert all(0 <= one.start < one.end <= len(text) and one.label in LABELS for one in findings)
    assert all(one.end <= other.start for one, other in pairwise(findings))
    regions = harmless(Seen(text))
    assert all(0 <= start < end <= len(text) for start, end in regions)
    assert all(one[1] <= other[0] for one, other in pairwise(regions))


@given(TEXTS)
def test_no_number_and_no_word_is_cut(text: str) -> None:
    for one in recognise(Seen(text)):
        if one.rule in ("url_credentials", "assigned_secret", "bearer_token", "private_key"):
            continue  # a secret ends where its quotes or its URL say
        for place in (one.start, one.end):
            if 0 < place < len(text):
                inside, outside = sorted((place - 1, place), key=lambda at: not one.start <= at < one.end)
                assert not (text[inside].isdigit() and text[outside].isdigit())
                assert not (
                    text[inside].isascii()
                    and text[outside].isascii()
                    and text[inside].isalnum()
                    and text[outside].isalnum()
                )


@given(TEXTS, st.integers(0, 240))
def test_what_is_not_read_is_not_told_and_changes_nothing_before(text: str, end: int) -> None:
    whole = read_personal(text, len(text)).findings
    assert read_personal(text, end).findings == tuple(one for one in whole if one.end <= end)


@given(TEXTS)
def test_a_text_has_one_byte_a_code_point(text: str) -> None:
    data = shadow(text)
    assert len(data) == len(text)
    assert max(data, default=0) < 128


@given(
    st.sampled_from(SCRIPTS),
    st.sampled_from(["4539578763621486", "DE89 3704 0044 0532 0130 00", "415-555-0134", "93.184.216.34"]),
)
def test_digits_of_any_script_are_digits(script: str, number: str) -> None:
    plain = recognise(Seen(f"card {number} ."))
    other = recognise(Seen(f"card {number.translate(dict(zip(map(ord, '0123456789'), script, strict=True)))} ."))
    assert plain == other
    assert len(plain) == 1


@given(st.text(max_size=60).filter(lambda text: not any(char.isalnum() or char in "@._+-" for char in text)))
def test_what_stands_around_an_address_does_not_matter(around: str) -> None:
    found = recognise(Seen(f"{around} bob@firma.de {around}"))
    assert [(one.start, one.end) for one in found] == [(len(around) + 1, len(around) + 13)]


@given(st.from_regex(r"[0-9]{15}", fullmatch=True), st.integers(0, 15), st.integers(1, 9))
def test_luhn_sees_any_wrong_digit(body: str, place: int, off: int) -> None:
    number = next(body + last for last in "0123456789" if luhn(body + last))
    wrong = str((int(number[place]) + off) % 10)
    assert not luhn(number[:place] + wrong + number[place + 1 :])


@given(st.from_regex(r"[0-9]{11}", fullmatch=True), st.integers(0, 11), st.integers(1, 9))
def test_verhoeff_sees_any_wrong_digit(body: str, place: int, off: int) -> None:
    number = next(body + last for last in "0123456789" if verhoeff(body + last))
    wrong = str((int(number[place]) + off) % 10)
    assert not verhoeff(number[:place] + wrong + number[place + 1 :])


@given(st.from_regex(r"[0-9]{10}", fullmatch=True), st.integers(0, 10), st.integers(1, 9))
def test_mod_11_10_sees_any_wrong_digit(body: str, place: int, off: int) -> None:
    number = next(body + last for last in "0123456789" if mod11_10(body + last))
    wrong = str((int(number[place]) + off) % 10)
    assert not mod11_10(number[:place] + wrong + number[place + 1 :])


@pytest.mark.parametrize("piece", ["a@", "1.", "a:", "1 ", "eyJaaaaaaaa.", "x-", "(", "+1", "0 0", "call 1"])
def test_a_long_run_of_one_thing_holds_nothing(piece: str) -> None:
    assert recognise(Seen(piece * 4000)) == []
