"""What finding words and expressions together rests on, over every character there is."""

from __future__ import annotations

import unicodedata

import re2

from router.config.expressions import options
from router.config.heuristics import KeywordRule
from router.signals import patterns
from router.signals.heuristics import Heuristics
from router.signals.loosely import any_of
from tests.support.signals import facts, matches

EVERY = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
HANGUL_VOWELS_AND_TAILS = range(0x1160, 0x1200)


def test_the_usual_characters_are_neither_marks_nor_second_halves() -> None:
    parts = [unicodedata.decomposition(one).split() for one in EVERY]
    second = {int(two[1], 16) for two in parts if len(two) == 2 and not two[0].startswith("<")}
    usual = [
        chr(code) for low, high in patterns.COMPOSED for code in range(low, high + 1) if not 0xD800 <= code < 0xE000
    ]
    wrong = [
        hex(ord(one))
        for one in usual
        if unicodedata.combining(one)
        or ord(one) in second
        or ord(one) in HANGUL_VOWELS_AND_TAILS
        or unicodedata.normalize("NFC", one) != one
    ]
    assert not wrong


def test_a_literal_is_found_whatever_character_folds_to_it() -> None:
    missed = []
    by_folded: dict[str, list[str]] = {}
    for one in EVERY:
        if (folded := one.casefold()) != one and folded.strip():
            by_folded.setdefault(folded, []).append(one)
    for folded, written in by_folded.items():
        expression = re2.compile(any_of([(folded, False)]), options())
        missed += [hex(ord(one)) for one in written if expression.search(one.encode()) is None]
    assert not missed


def test_a_literal_with_the_parts_of_longer_foldings() -> None:
    assert (
        matches(KeywordRule("keyword:k", "OR", "exact", ("Straßenfest mit Waffel",)), "STRASSENFEST MIT WAﬀEL") is True
    )
    assert matches(KeywordRule("keyword:k", "OR", "exact", ("sss",)), "ſß") is True
    assert matches(KeywordRule("keyword:k", "OR", "exact", ("se",)), "ße") is False


def test_expressions_that_name_a_group_alike_stay_apart() -> None:
    rules = [KeywordRule(f"keyword:{n}", "OR", "regex", (rf"(?P<number>\d{{{n}}})!",)) for n in range(1, 13)]
    found = Heuristics(rules).read(facts("call 12345!"))
    assert [one.matched for one in found.values()] == [n <= 5 for n in range(1, 13)]
