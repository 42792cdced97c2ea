"""Bytes of views and windows from tokens as written."""

from __future__ import annotations

import pytest

from router.config.sizes import RoutingView, ScanWindow, room_for_text, scan_window_for, view_for


def test_the_documents_number() -> None:
    assert room_for_text(32_768) == 31_744
    assert view_for(None, 0.25, 32_768).max_bytes == 31_744
    window = scan_window_for(None, None, None, 32_768)
    assert (window.size, window.max_size) == (31_744, 31_744)


@pytest.mark.parametrize("tokens", [256, 8192, 1_048_576])
@pytest.mark.parametrize("largest", [None, 8192, 1_048_576])
def test_no_setting_overruns_the_model(tokens: int, largest: int | None) -> None:
    window = scan_window_for(tokens, None, largest, 32_768)
    assert max(window.size, window.max_size, view_for(tokens, 0.5, 32_768).max_bytes) <= 31_744
    assert window.size <= window.max_size


def test_the_table_of_defaults() -> None:
    assert scan_window_for(None, None, None, None) == ScanWindow(32_768, 2048, 32_768, 4, 3.0)
    assert scan_window_for(None, None, None, None, remote=True) == ScanWindow(16_384, 1024, 16_384, 4, 3.0)
    assert view_for(None, 0.25, None) == RoutingView(32_768, 0.25)
    assert view_for(None, 0.25, None, remote=True) == RoutingView(16_384, 0.25)


def test_the_largest_window_is_what_the_model_takes_unless_written() -> None:
    assert scan_window_for(2048, 128, None, 32_768) == ScanWindow(8192, 512, 31_744)
    assert scan_window_for(2048, 128, 4096, 32_768) == ScanWindow(8192, 512, 16_384)
    assert scan_window_for(2048, 128, 4096, None) == ScanWindow(8192, 512, 16_384)
    assert scan_window_for(2048, 128, None, None).max_size == 8192


def test_views_follow_the_configuration_and_the_model() -> None:
    assert view_for(256, 0.5, 8192) == RoutingView(1024, 0.5)
    assert view_for(8192, 0.25, 2048).max_bytes == 1024
    assert view_for(8192, 0.25, 512).max_bytes == 256


@pytest.mark.parametrize("readable", [64, 512, 1100, 2048, 4096, 8192])
@pytest.mark.parametrize(("tokens", "overlap"), [(None, None), (256, None), (256, 127), (1024, 400), (1024, 0)])
def test_the_overlap_is_less_than_half_a_window(readable: int, tokens: int | None, overlap: int | None) -> None:
    window = scan_window_for(tokens, overlap, None, readable)
    assert 0 <= 2 * window.overlap < window.size


def test_a_default_overlap_fits_small_windows() -> None:
    assert scan_window_for(256, None, None, None).overlap == 256
