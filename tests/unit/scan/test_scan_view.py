"""The bounded view of a long text."""

from __future__ import annotations

import re
import time

import pytest

from router.config.sizes import RoutingView, view_for
from router.scan.view import routing_view

MARKER = re.compile(r"\n\[\.\.\. (\d+) tokens omitted \.\.\.\]\n")


def split(view: str) -> tuple[str, int, str]:
    head, number, tail = MARKER.split(view)
    return head, int(number), tail


@pytest.mark.parametrize("text", ["", "short", "é" * 512, "a" * 1024, "\r\n\x00" * 300])
def test_a_text_within_the_view_is_untouched(text: str) -> None:
    assert routing_view(text, RoutingView(1024, 0.25)) is text


def test_one_byte_more_is_cut() -> None:
    text = "a" * 1025
    view = routing_view(text, RoutingView(1024, 0.25))
    assert len(view) <= 1024
    assert MARKER.search(view)


def test_head_gets_its_share_and_tail_the_rest() -> None:
    text = "".join(chr(ord("a") + i % 26) for i in range(100_000))
    head, number, tail = split(routing_view(text, RoutingView(4096, 0.25)))
    assert text.startswith(head)
    assert text.endswith(tail)
    assert 1000 <= len(head) <= 1024
    assert 3000 <= len(tail) <= 3072
    assert number == -(-(100_000 - len(head) - len(tail)) // 4)


@pytest.mark.parametrize(("share", "empty"), [(0.0, 0), (1.0, 2)])
def test_all_to_one_side(share: float, empty: int) -> None:
    assert split(routing_view("word " * 5000, RoutingView(1024, share)))[empty] == ""


def test_the_documents_number() -> None:
    view = view_for(8192, 0.25, 32_768)
    assert view == RoutingView(31_744, 0.25)
    assert len(routing_view("x" * 200_000, view).encode()) <= 31_744
    assert "[... 42072 tokens omitted ...]" in routing_view("x" * 200_000, view)


def test_code_points_and_clusters_stay_whole() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    for size in range(300, 330):
        head, _, tail = split(routing_view(family * 200, RoutingView(size, 0.5)))
        assert head.replace(family, "") == ""
        assert tail.replace(family, "") == ""
        head, _, tail = split(routing_view("e\u0301" * 1000, RoutingView(size, 0.5)))
        assert head.replace("e\u0301", "") == ""
        assert tail.replace("e\u0301", "") == ""
        head, _, tail = split(routing_view("a\r\n" * 1000, RoutingView(size, 0.5)))
        assert not head.endswith("\r")
        assert not tail.startswith("\n")


def test_an_endless_cluster_is_cut_between_code_points() -> None:
    view = routing_view("e" + "\u0301" * 5000, RoutingView(300, 0.5))
    assert len(view.encode()) <= 300
    assert len(view.encode()) > 200


def test_half_surrogates_do_not_break_it() -> None:
    view = routing_view("\ud800" * 2000, RoutingView(300, 0.25))
    assert len(view.encode("utf-8", "surrogatepass")) <= 300


def test_a_view_smaller_than_the_marker_keeps_the_end() -> None:
    assert routing_view("abcdefgh" * 10, RoutingView(5, 0.25)) == "defgh"
    assert routing_view("abcdefgh" * 10, RoutingView(0, 0.25)) == ""


def test_twelve_megabytes_are_cut_without_a_pass_over_them() -> None:
    text = "x" * 12_000_000
    view = view_for(8192, 0.25, 32_768)
    best = min(_timed(text, view) for _ in range(5))
    assert best < 0.005


def _timed(text: str, view: RoutingView) -> float:
    start = time.perf_counter()
    routing_view(text, view)
    return time.perf_counter() - start
