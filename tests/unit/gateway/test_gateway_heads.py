from __future__ import annotations

import pytest

from router.gateway.body import BodyBuffer
from router.gateway.heads import is_router_owned, read_head
from router.gateway.proto.ext_proc_pb2 import HeaderMap, HeaderValue
from router.gateway.replies import clean
from router.wire.http import Head
from tests.support.gateway import header_map


def test_pseudo_headers_become_method_path_and_host() -> None:
    head, owned = read_head(
        header_map([(":method", "POST"), (":path", "/v1?a=b"), (":authority", "h:1"), (":scheme", "https"), ("A", "b")])
    )
    assert head == Head("POST", "/v1?a=b", {"host": "h:1", "a": "b"})
    assert owned == ()


def test_a_host_header_wins_over_authority() -> None:
    head, _ = read_head(header_map([(":authority", "a"), ("host", "b")]))
    assert head.headers == {"host": "b"}


def test_values_in_the_old_text_field_are_read() -> None:
    head, _ = read_head(HeaderMap(headers=[HeaderValue(key="a", value="text")]))
    assert head.headers == {"a": "text"}


@pytest.mark.parametrize(
    ("raw", "text"), [(b"plain", "plain"), ("é😀".encode(), "é😀"), (b"\xe9", "é"), (b"\xff\x00", "ÿ\x00"), (b"", "")]
)
def test_any_bytes_are_read(raw: bytes, text: str) -> None:
    head, _ = read_head(header_map([("a", raw)]))
    assert head.headers == {"a": text}


def test_a_router_owned_header_that_came_twice_is_named_once() -> None:
    _, owned = read_head(header_map([("X-Vsr-A", "1"), ("x-vsr-a", "2"), ("b", "3")]))
    assert owned == ("x-vsr-a",)


@pytest.mark.parametrize("name", ["x-vsr-a", "X-VSR-", "x_vsr_a", "x-vsr_a", "x_vsr-a", "x-selected-model"])
def test_router_owned_names(name: str) -> None:
    assert is_router_owned(name)


@pytest.mark.parametrize("name", ["x-vsr", "x-vsrs-a", "vsr-a", "x-selected", "x-selected-model-2", "authorization"])
def test_names_of_others(name: str) -> None:
    assert not is_router_owned(name)


def test_a_body_in_one_piece_is_not_copied() -> None:
    piece = b"x" * 100
    buffer = BodyBuffer(100)
    assert buffer.add(piece)
    assert buffer.take() is piece
    assert buffer.take() == b""


def test_a_body_that_outgrows_its_limit_is_let_go() -> None:
    buffer = BodyBuffer(3)
    assert buffer.add(b"ab")
    assert not buffer.add(b"cd")
    assert buffer.take() == b""


@pytest.mark.parametrize(
    ("value", "cleaned"),
    [("plain é", "plain é"), ("a\r\nb", "a  b"), ("a\tb", "a\tb"), ("\x7f\x00", "  "), ("\ud800", " "), ("", "")],
)
def test_header_values_are_cleaned(value: str, cleaned: str) -> None:
    assert clean(value) == cleaned


@pytest.mark.parametrize(
    ("headers", "body_follows", "framing"),
    [
        ([], True, {"transfer-encoding": "chunked"}),
        ([("content-length", "3")], True, {"content-length": "3"}),
        ([("content-length", "0")], False, {"content-length": "0"}),
        ([], False, {}),
    ],
)
def test_a_body_shows_in_the_head(headers: list[tuple[str, str]], body_follows: bool, framing: dict[str, str]) -> None:
    head, _ = read_head(header_map(headers), body_follows=body_follows)
    assert head.headers == framing
