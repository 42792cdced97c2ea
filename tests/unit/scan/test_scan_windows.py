"""Where windows are cut, how many there are, and in which order they are read."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.config.sizes import ScanWindow, scan_window_for
from router.scan.text import Text, utf8_length
from router.scan.windows import MOST_WINDOWS, Cover, Window, cover, last_half, reread, visiting_order

LARGEST = 31_744
DEFAULT = scan_window_for(None, None, None, 32_768)


def first(_: int) -> int:
    return 0


def text_of(window: Window, text: Text) -> str:
    return text.text[window.start.point : window.end.point]


def check(found: Cover, text: Text, sizes: ScanWindow) -> None:
    """What holds of every plan."""
    windows = found.windows
    assert windows[0].start == (0, 0)
    assert windows[-1].end == text.end
    assert sorted(set(found.order)) == sorted(found.order)
    assert len(found.order) <= MOST_WINDOWS
    for left, right in pairwise(windows):
        assert left.end.byte - right.start.byte >= min(sizes.overlap, left.size, right.size) - 3
        assert left.start.byte < right.start.byte
    for window in windows:
        # Points and bytes agree: no window starts or ends inside a character.
        assert utf8_length(text.text[: window.start.point]) == window.start.byte
        assert utf8_length(text_of(window, text)) == window.size <= max(found.size, sizes.size)
    if len(windows) > 1:
        for end in (windows[0], windows[-1]):
            assert sizes.size - 3 <= end.size <= sizes.size


CHARACTERS = st.sampled_from(
    ["a", " ", "\n", "é", "漢", "😀", "e\u0301", "👩\u200d👧", "\r\n", "\x00", "\ud800", "\udc00"]
)
TEXTS = st.lists(CHARACTERS, max_size=120).map(lambda parts: "".join(parts) * 7)


@given(TEXTS, st.integers(16, 200), st.integers(0, 99), st.integers(1, 8), st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_every_byte_is_in_a_window(raw: str, size: int, overlap: int, growth: int, chance: random.Random) -> None:
    sizes = ScanWindow(size, min(overlap, (size - 1) // 2 - 6) if size > 16 else 0, size * growth)
    text = Text(raw)
    found = cover(text, ScanWindow(sizes.size, max(sizes.overlap, 0), sizes.max_size), chance.randrange)
    check(found, text, ScanWindow(sizes.size, max(sizes.overlap, 0), sizes.max_size))


@given(TEXTS, st.integers(0, 3000))
def test_bytes_and_points_agree(raw: str, byte: int) -> None:
    text = Text(raw)
    assert text.bytes == utf8_length(raw)
    floor, ceil = text.floor(byte), text.ceil(byte)
    for place in (floor, ceil):
        assert utf8_length(raw[: place.point]) == place.byte
        assert text.at_point(place.point) == place
    assert floor.byte <= min(byte, text.bytes) <= ceil.byte
    assert ceil.point - floor.point <= 1


def test_points_far_into_a_long_text() -> None:
    raw = "aé漢😀\ud800" * 5000
    text = Text(raw)
    for point in (0, 1, 4095, 4096, 4097, 12_345, len(raw)):
        place = text.at_point(point)
        assert place.byte == utf8_length(raw[:point])
        assert text.floor(place.byte) == place
    assert text.bytes_of([(1, 3), (4, 5)]) == [(1, 6), (10, 13)]


def test_an_input_of_one_window_is_read_as_it_is() -> None:
    for length in (0, 1, LARGEST):
        found = cover(Text("x" * length), DEFAULT, first)
        assert found.order == (0,)
        assert found.windows[0].size == length


def test_one_byte_more_makes_two_windows_that_overlap_all_but_a_byte() -> None:
    found = cover(Text("x" * (LARGEST + 1)), DEFAULT, first)
    assert [(window.start.byte, window.end.byte) for window in found.windows] == [(0, LARGEST), (1, LARGEST + 1)]
    assert found.order == (1, 0)


def test_windows_share_the_overlap_exactly_where_there_is_no_white_space() -> None:
    found = cover(Text("x" * 200_000), DEFAULT, first)
    shared = [left.end.byte - right.start.byte for left, right in pairwise(found.windows)]
    assert set(shared) == {2048}


def test_a_cut_moves_back_to_white_space() -> None:
    words = Text("something " * 20_000)
    found = cover(words, DEFAULT, first)
    check(found, words, DEFAULT)
    assert all(text_of(window, words).startswith("something") for window in found.windows[1:-1])
    assert all(window.size == LARGEST for window in found.windows[1:-2])


def test_characters_that_belong_together_stay_together() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    for raw in (family * 900, "e\u0301" * 9000):
        found = cover(Text(raw), ScanWindow(4096, 256, 4096), first)
        for window in found.windows[1:-1]:
            assert raw[window.start.point] in "e\U0001f468"


def test_middle_windows_grow_so_that_256_cover_the_input() -> None:
    sizes = scan_window_for(2048, 128, None, 32_768)
    for size in (1_000_000, 2_500_000, 5_000_000, 7_500_000):
        text = Text("word " * (size // 5))
        found = cover(text, sizes, random.randrange)
        check(found, text, sizes)
        assert len(found.order) == len(found.windows)
        if size > 2_000_000:
            assert 240 <= len(found.windows) <= MOST_WINDOWS
            assert 8192 < found.size <= LARGEST
        else:
            assert found.size == 8192


def test_the_longest_input_that_is_read_whole() -> None:
    assert len(cover(Text("x" * 7_500_000), DEFAULT, first).order) == 253
    full = 2 * LARGEST + 254 * (LARGEST - 2048) - 2048
    assert full == 7_604_224
    for length, left_out in ((full, 0), (full + 1, 1), (full + LARGEST, 2)):
        found = cover(Text("x" * length), DEFAULT, first)
        assert len(found.order) == MOST_WINDOWS
        assert len(found.windows) - len(found.order) == left_out


def test_white_space_never_costs_a_window_that_would_have_been_read() -> None:
    text = Text(("y" * 60 + " ") * (7_604_224 // 61))
    found = cover(text, DEFAULT, first)
    assert len(found.order) == len(found.windows)


def test_what_is_left_out_of_a_longer_input_is_spread_and_unpredictable() -> None:
    text = Text("x" * 12_000_000)
    chance = random.Random(5)
    plans = [cover(text, DEFAULT, chance.randrange) for _ in range(40)]
    count = len(plans[0].windows)
    assert count > 400
    read = [sum(number in plan.order for plan in plans) for number in range(count)]
    assert read[0] == read[-1] == 40
    assert min(read) > 0
    assert max(read[1:-1]) < 40
    for plan in plans:
        left_out = sorted(set(range(count)) - set(plan.order))
        assert all(right - left > 1 for left, right in pairwise(left_out))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 9, 64, 255, 256, 424])
def test_every_window_is_visited_once(count: int) -> None:
    assert sorted(visiting_order(count, random.randrange)) == list(range(count))


def test_tail_head_middle_quarters_eighths() -> None:
    assert visiting_order(9, first) == [8, 0, 4, 2, 6, 1, 3, 5, 7]
    assert visiting_order(9, lambda below: below - 1) == [8, 0, 4, 6, 2, 7, 1, 3, 5]


def test_orders_differ_between_requests_and_only_within_a_round() -> None:
    orders = {tuple(visiting_order(65, random.randrange)) for _ in range(50)}
    assert len(orders) > 10
    for order in orders:
        assert order[:3] == (64, 0, 32)
        assert set(order[3:5]) == {16, 48}
        assert set(order[5:9]) == {8, 24, 40, 56}


@pytest.mark.parametrize("count", [40, 256])
def test_any_beginning_of_the_order_is_spread_over_the_input(count: int) -> None:
    order = visiting_order(count, random.randrange)
    for length in (3, 5, 9, 17, 33):
        seen = sorted(order[:length])
        gaps = [right - left for left, right in pairwise(seen)]
        assert max(gaps) <= -(-(count - 1) // (length - 1)) + 1


def test_twins_count_among_the_256() -> None:
    text = Text("word " * 500_000)
    sizes = scan_window_for(2048, 128, None, 32_768)
    doubled: Callable[[Window, int], int] = lambda window, size: -(-window.size // size)  # noqa: E731
    found = cover(text, sizes, first, doubled)
    check(found, text, sizes)
    assert len(found.order) == len(found.windows)
    assert 2 * len(found.order) <= MOST_WINDOWS
    assert found.size > cover(text, sizes, first).size
    long = Text("x" * 7_000_000)
    found = cover(long, DEFAULT, first, doubled)
    assert 2 * len(found.order) <= MOST_WINDOWS < 2 * len(found.windows)


def test_what_is_read_again_has_the_configured_size() -> None:
    sizes = scan_window_for(2048, 128, None, 32_768)
    text = Text("x" * 4_000_000)
    found = cover(text, sizes, first)
    big = found.windows[7]
    parts = reread(text, big, sizes)
    assert (parts[0].start, parts[-1].end) == (big.start, big.end)
    assert all(part.size == sizes.size for part in parts[:-1])
    assert all(left.end.byte - right.start.byte == 512 for left, right in pairwise(parts))


def test_the_last_half_window() -> None:
    text = Text("😀" * 100_000)
    tail = cover(text, DEFAULT, first).windows[-1]
    half = last_half(text, tail)
    assert half.end == text.end
    assert half.size == LARGEST // 2
