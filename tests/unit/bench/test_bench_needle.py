"""bench/needle without its processes: that texts are what they are called, what is tried, and the sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from bench.lib.fillers import DISGUISES, KINDS, filler, first_bytes, placed
from bench.needle.grid import KB, MB, PLACES, Grid, embedded, exact, tried
from bench.needle.product import Guarded, Seen
from bench.needle.summary import counts, ratios, sheets
from router.config.sizes import WrittenSizes
from router.scan.normalise import normalise
from tests.support.artifacts_exact import ATTACKS, HARM, PERSONAL

ATTACK = ATTACKS[0]


@pytest.mark.parametrize("kind", KINDS)
def test_fillers_are_as_long_as_said_never_alike_and_harmless(kind: str) -> None:
    texts = [filler(kind, 64 * KB, seed) for seed in range(3)]
    assert [len(text.encode()) for text in texts] == [64 * KB] * 3
    assert filler(kind, 64 * KB, 0) == texts[0]
    pieces = [{text[at : at + 2 * KB] for at in range(0, 60 * KB, 2 * KB)} for text in texts]
    assert not pieces[0] & pieces[1]
    whole = filler(kind, 2 * MB, 7).lower()
    assert not any(known in whole for known in (*ATTACKS, HARM, PERSONAL))


@pytest.mark.parametrize("place", PLACES)
def test_an_attack_stands_where_it_was_put(place: int) -> None:
    text = placed(filler("prose", 16 * KB, 1), ATTACK, place)
    assert len(text.encode()) == 16 * KB
    assert text.count(ATTACK) == 1
    assert text.index(ATTACK) / len(text) == pytest.approx(place / 100, abs=0.01)


def test_a_text_cut_inside_a_character_keeps_its_length() -> None:
    assert first_bytes("aé", 2) == "a."
    assert first_bytes("aé", 3) == "aé"


@pytest.mark.parametrize("name", DISGUISES)
def test_disguises_hide_an_attack_and_can_be_undone(name: str) -> None:
    written = DISGUISES[name](ATTACK)
    assert (ATTACK in written) == (name == "as it is" or "after it" in name)
    assert ATTACK in normalise(placed(filler("prose", 2 * KB, 3), written, 50)).text


class Searching:
    """Finds the attack where it stands as it is, or where its words do."""

    def __init__(self) -> None:
        self.read_texts: list[str] = []

    def read(self, text: str) -> Seen:
        self.read_texts.append(text)
        return Seen(ATTACK in normalise(text).text, False, 0.5)


def search(grid: Grid) -> tuple[list[Mapping[str, Any]], Searching]:
    product = Searching()
    return list(tried(grid, cast(Guarded, product))), product


SIZES = WrittenSizes().scan
SMALL = Grid("exact", 2 * KB, MB, (KB, 8 * KB), (0, 50, 100), ("prose",), (ATTACK,), plain=2, disguised=2 * KB)


def test_every_text_of_a_grid_is_read_whole_and_from_its_first_window_alone() -> None:
    rows, product = search(SMALL)
    assert len(rows) == SMALL.requests
    assert {len(text.encode()) for text in product.read_texts} == {KB, 2 * KB, 8 * KB}
    assert [(row["place"], row["found"], row["first_window"]) for row in rows if row["size"] == 8 * KB] == [
        (0, True, True),
        (50, True, False),
        (100, True, False),
        (None, False, False),
        (None, False, False),
    ]


def test_kinds_of_text_may_take_turns_and_none_is_left_without_harmless_texts() -> None:
    grid = replace(SMALL, kinds=("prose", "code", "logs"), turns=True, plain=1)
    rows, _ = search(grid)
    assert len(rows) == grid.requests
    attacks = [row for row in rows if row["place"] is not None and row["disguise"] is None]
    assert [row["kind"] for row in attacks] == ["prose", "code", "logs"] * 2
    assert {(row["size"], row["kind"]) for row in rows if row["place"] is None} == {
        (size, kind) for size in grid.sizes for kind in grid.kinds
    }


def test_ratios_are_shares_of_what_was_tried() -> None:
    rows, _ = search(SMALL)
    found = ratios(rows)
    assert found["exact_recall"] == 1
    assert found["exact_recall_first_window"] == pytest.approx(4 / 6, abs=1e-3)
    assert (found["exact_false_alarms"], found["exact_recall_disguised"], found["exact_read_in_part"]) == (0, 1, 0)
    assert counts(rows) == {"exact_attacks": 6, "exact_harmless": 4, "exact_disguised": len(DISGUISES)}


def test_what_is_too_long_to_be_read_whole_counts_by_itself_and_must_be_told() -> None:
    rows, _ = search(replace(SMALL, most=2 * KB))
    missed = [{**row, "found": row["place"] == 100, "partial": row["place"] == 0} for row in rows if row["beyond"]]
    found = ratios([*(row for row in rows if not row["beyond"]), *missed])
    assert (found["exact_recall"], found["exact_read_in_part"]) == (1, 0)
    assert found["exact_recall_beyond"] == pytest.approx(1 / 3, abs=1e-3)
    assert found["exact_missed_in_silence"] == pytest.approx(1 / 6, abs=1e-3)
    assert "more than all windows hold" in sheets(rows)[0].rows[2][0]


def test_one_table_has_places_and_sizes_and_the_first_window_beside() -> None:
    rows, _ = search(SMALL)
    grid, disguises = sheets(rows)
    assert grid.columns == ("text", "0 %", "50 %", "100 %", "anywhere", "false alarms")
    assert grid.rows[2] == ("8 KB", "1/1", "1/1", "1/1", "3/3", "0/2")
    assert grid.rows[3] == ("8 KB, first window only", "1/1", "0/1", "0/1", "1/3", "0/2")
    assert disguises.columns[1:] == ("exact, 2 KB",)
    assert {row[1] for row in disguises.rows} == {"1/1"}


@pytest.mark.parametrize("quick", [False, True])
def test_what_is_tried(*, quick: bool) -> None:
    small, large = embedded(SIZES(8_192), quick=quick), exact(SIZES(32_768), quick=quick)
    assert (small.window, large.window) == (7_168, 31_744)
    assert 4 * MB < large.most < 8 * MB
    assert (max(small.sizes), max(large.sizes)) == ((16 * KB, MB) if quick else (64 * KB, 8 * MB))
    assert {0, 100} <= set(small.places)
    assert small.deadline_ms == 0 < large.deadline_ms
    assert set(small.places) == set(large.places) == ({0, 50, 100} if quick else set(PLACES))
