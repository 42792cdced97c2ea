"""Rules and a model over one text: whose word counts where, and what is said of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from router.questions import Span
from router.runtime.personal.finding import Seen
from router.runtime.personal.harmless import harmless
from router.runtime.personal.reading import overruled, read_personal, together
from router.runtime.personal.shadow import LETTER, OTHER, shadow
from router.runtime.spans import WindowScores


def identifiers(text: str) -> list[str]:
    return [text[start:end] for start, end in harmless(Seen(text))]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "3f786850e387550fdab836ed7e6dc881de23001b",
            "3f78685",
            "550e8400-e29b-41d4-a716-446655440000",
            "#3fa2c1",
            "0xDEADBEEF",
        ),
        *(
            "3074185296",
            "1755302400000",
            "2024-01-31T12:30:00Z",
            "2024-01-31 12:30:00.125+01:00",
            "12:30:45",
            "v1.2.3-rc.1",
        ),
        *(
            "10.2.0.1",
            "127.0.0.1",
            "INV-2024-0017",
            "user_name",
            "getUserName",
            "$maria",
            "00:1B:44:11:3A:B7",
            "print(",
        ),
        *(
            "https://github.com/torvalds/linux?x=1",
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
            "4111 1111 1111 1111",
            "user@example.com",
        ),
    ],
)
def test_identifiers_that_are_nobodys(text: str) -> None:
    assert identifiers(f"see {text} there") == [text]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "Maria Lopez",
            "McDonald",
            "O'Brien",
            "_Maria Lopez_",
            "Müller-Lüdenscheidt",
            "12.03.1985",
            "3/12/85",
            "19850312",
        ),
        *(
            "1985-03-12",
            "221B Baker Street",
            "10115 Berlin",
            "SW1A 1AA",
            "Anna",
            "B-52",
            "Apt 4B",
            "1999",
            "李小龙",
            "Ж12",
        ),
    ],
)
def test_names_dates_and_addresses_are_no_identifiers(text: str) -> None:
    assert identifiers(f"see {text} there") == []


def test_every_code_point_has_its_place_in_the_shadow() -> None:
    text = "é٣９\uff0d\u00a0\u200b中😀e\u0301A"
    data = shadow(text)
    assert len(data) == len(text)
    assert data == bytes([LETTER]) + b"39-  " + bytes([OTHER, OTHER]) + b"e" + bytes([LETTER]) + b"A"


def scores(text: str, offsets: Sequence[tuple[int, int]]) -> list[WindowScores]:
    return [WindowScores(0, np.full((len(offsets), 2), 0.9), np.full(len(offsets), 0.1))]


def test_a_token_in_an_identifier_or_a_finding_counts_for_nothing() -> None:
    text = "Anna 3f786850e3 anna@firma.de Berlin"
    offsets = [(0, 4), (5, 9), (9, 15), (16, 20), (20, 29), (30, 36)]
    personal = read_personal(text, len(text))
    (window,) = overruled(personal, offsets, scores(text, offsets))
    assert window.scores[:, 0].tolist() == [0.9, 0, 0, 0, 0, 0.9]


def test_windows_that_share_tokens_are_each_overruled_in_their_place() -> None:
    text = "ab 3f786850e3 cd"
    offsets = [(0, 2), (3, 13), (14, 16)]
    first, second = np.full((2, 1), 0.9), np.full((2, 1), 0.8)
    windows = [WindowScores(0, first, None), WindowScores(1, second, None)]
    kept = overruled(read_personal(text, len(text)), offsets, windows)
    assert [window.scores[:, 0].tolist() for window in kept] == [[0.9, 0], [0, 0.8]]


def test_nothing_is_touched_where_there_is_nothing_to_overrule() -> None:
    windows = scores("Anna", [(0, 4)])
    assert overruled(read_personal("Anna", 4), [(0, 4)], windows) == windows


def test_spans_of_both_are_in_text_order_with_their_sources() -> None:
    text = "bob@firma.de Anna"
    spans, sources = together(read_personal(text, len(text)), text, [Span("PERSON", 13, 17, 0.8)])
    assert spans == (Span("EMAIL_ADDRESS", 0, 12, 1.0), Span("PERSON", 13, 17, 0.8))
    assert sources == ("email", "model")


def test_a_model_s_span_that_reaches_into_a_finding_or_holds_no_word_goes() -> None:
    text = "Anna bob@firma.de ..."
    found = [Span("PERSON", 0, 8, 0.9), Span("PERSON", 18, 21, 0.9)]
    assert together(read_personal(text, len(text)), text, found)[1] == ("email",)


@pytest.mark.parametrize(
    ("text", "end", "found"),
    [
        ("4539578763621486 and", 20, 1),
        ("4539578763621486 and", 16, 1),
        ("4539578763621486 and", 15, 0),
        ("4539578763621486123 and", 16, 0),
        ("bob@firma.dev", 12, 0),
    ],
)
def test_a_number_that_goes_on_beyond_what_is_read_is_not_found(text: str, end: int, found: int) -> None:
    assert len(read_personal(text, end).findings) == found
