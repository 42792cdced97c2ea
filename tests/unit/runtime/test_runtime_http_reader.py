"""The reader of requests: what is whole, what is too much, and what is no HTTP."""

from __future__ import annotations

import pytest

from router.runtime.http.message import Fault, Request, Response
from router.runtime.http.reader import MAX_HEAD_BYTES, Malformed, RequestReader

POST = b"POST /v1/systemone?x=1 HTTP/1.1\r\nHost: h\r\nX-A: one\r\nx-a: two\r\nContent-Length: 5\r\n\r\nhello"
STREAM = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKED = STREAM.replace(b"/", b"/c", 1) + b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nTrailer: t\r\n\r\n"
GET = b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n"


def reader(limit: int = 100, refused: str = "") -> RequestReader:
    """A reader that refuses one path at its head with 404."""

    def admit(request: Request) -> Response | None:
        return Response(404) if request.path == refused else None

    return RequestReader(limit, admit, lambda fault, _: Response(413 if fault is Fault.BODY_TOO_LARGE else 400))


def whole(found: RequestReader) -> list[tuple[str, str, bytes]]:
    return [(arrival.request.method, arrival.request.path, arrival.request.body) for arrival in found.whole]


def test_a_request_is_read_whole() -> None:
    found = reader()
    found.feed(POST)
    (arrival,) = found.whole
    request = arrival.request
    assert (request.method, request.target, request.path) == ("POST", "/v1/systemone?x=1", "/v1/systemone")
    assert request.headers == {"host": "h", "x-a": "one, two", "content-length": "5"}
    assert (request.body, request.keep_alive, request.old, arrival.refusal) == (b"hello", True, False, None)
    assert not found.begun


@pytest.mark.parametrize("data", [POST, CHUNKED, GET])
def test_it_is_the_same_wherever_it_is_cut(data: bytes) -> None:
    expected = reader()
    expected.feed(data)
    for cut in range(1, len(data)):
        found = reader()
        found.feed(data[:cut])
        assert found.begun
        assert not found.whole
        found.feed(data[cut:])
        assert whole(found) == whole(expected), cut
        assert found.whole[0].request.headers == expected.whole[0].request.headers
    single = reader()
    for byte in data:
        single.feed(bytes([byte]))
    assert whole(single) == whole(expected)


def test_pipelined_requests_keep_their_order() -> None:
    found = reader()
    found.feed(POST + CHUNKED + GET + POST[:-1])
    assert whole(found) == [
        ("POST", "/v1/systemone", b"hello"),
        ("POST", "/c", b"hello"),
        ("GET", "/health", b""),
    ]
    assert found.arriving is not None
    found.feed(POST[-1:])
    assert len(found.whole) == 4


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/a?b#c", "/a"),
        ("http://host:1/a/b?c", "/a/b"),
        ("HTTPS://host", "/"),
        ("*", "*"),
        ("/a//b", "/a//b"),
        ("/a?u=http://x/y", "/a"),
    ],
)
def test_the_path_of_every_form_of_target(target: str, path: str) -> None:
    assert Request("GET", target, {}).path == path


@pytest.mark.parametrize(
    ("head", "kept"),
    [
        (b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", True),
    ],
)
def test_who_keeps_the_connection(head: bytes, kept: bool) -> None:
    found = reader()
    found.feed(head)
    request = found.whole[0].request
    assert (request.keep_alive, request.old) == (kept, b"1.0" in head)


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\nHost: h\n\n",
        b"GET / HTTP/2.0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\nx",
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\nx",
        b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999999\r\n\r\nx",
        b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nBad Name: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nName : x\r\n\r\n",
        b"CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n",
    ],
)
def test_what_two_servers_could_read_differently_is_malformed(data: bytes) -> None:
    found = reader()
    with pytest.raises(Malformed) as caught:
        found.feed(data)
    assert caught.value.fault is Fault.MALFORMED
    assert not found.whole


@pytest.mark.parametrize(
    ("fields", "version", "right"),
    [
        ("", "1.1", False),
        ("", "1.0", True),
        ("Host: a\r\nHost: b\r\n", "1.1", False),
        ("Host: a\r\nhost: a\r\n", "1.0", False),
        ("Host:\r\n", "1.1", True),
        ("Host: \r\nHost: \r\n", "1.1", False),
        ("Host: localhost \r\n", "1.1", True),
        ("Host: a_b.example:8080\r\n", "1.1", True),
        ("Host: [::1]:8080\r\n", "1.1", True),
        ("Host: a b\r\n", "1.1", False),
        ("Host: user@a\r\n", "1.1", False),
        ("Host: a/b\r\n", "1.0", False),
        ("Host: \u00e9\r\n", "1.1", False),
        ("Connection: Upgrade\r\nUpgrade: h2c\r\n", "1.1", False),
    ],
)
def test_a_request_is_for_one_host_which_old_ones_need_not_name(fields: str, version: str, right: bool) -> None:
    found = reader()
    data = f"GET / HTTP/{version}\r\n{fields}\r\n".encode()
    if right:
        found.feed(data)
    else:
        with pytest.raises(Malformed):
            found.feed(data)
    assert len(found.whole) == right


def test_every_request_of_a_connection_names_its_host_itself() -> None:
    found = reader()
    with pytest.raises(Malformed):
        found.feed(GET + GET + b"GET /health HTTP/1.1\r\n\r\n")
    assert len(found.whole) == 2
    trailer = reader()
    trailer.feed(CHUNKED.replace(b"Trailer: t", b"Host: t"))
    assert len(trailer.whole) == 1


def test_what_came_before_something_malformed_is_kept() -> None:
    found = reader()
    with pytest.raises(Malformed):
        found.feed(GET + POST + b"\x00")
    assert [path for _, path, _ in whole(found)] == ["/health", "/v1/systemone"]


@pytest.mark.parametrize(
    "pieces",
    [
        [b"GET / HTTP/1.1\r\nHost: h\r\nA: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n"],
        [b"GET / HTTP/1.1\r\nHost: h\r\nA: ", *[b"x" * 1000] * 40],
        [b"GET /", *[b"x" * 1000] * 40],
        [b"GET / HTTP/1.1\r\nHost: h\r\n" + b"".join(b"N%d: x\r\n" % i for i in range(8000)) + b"\r\n"],
        [STREAM + b"0\r\n", *[b"T: " + b"x" * 1000 + b"\r\n"] * 40],
        [STREAM + b"2\r\n{}\r\n0\r\nT: ", *[b"x" * 1000] * 40],
        [STREAM + b"2;", *[b"x" * 1000] * 40],
    ],
    ids=["one header", "in pieces", "target", "many", "trailers", "a trailer in pieces", "a chunk's extension"],
)
def test_a_head_has_a_limit(pieces: list[bytes]) -> None:
    found = reader()

    def feed() -> None:
        for piece in pieces:
            found.feed(piece)

    with pytest.raises(Malformed) as caught:
        feed()
    assert caught.value.fault is Fault.HEAD_TOO_LARGE


def test_a_large_body_is_not_taken_for_a_head() -> None:
    found = reader(limit=1_000_000)
    found.feed(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 500000\r\n\r\n")
    for _ in range(500):
        found.feed(b"x" * 1000)
    assert found.whole[0].request.body == b"x" * 500_000
    found.feed(GET)
    assert len(found.whole) == 2


def test_chunks_of_any_number_are_not_taken_for_a_head() -> None:
    found = reader(limit=1_000_000)
    found.feed(STREAM)
    for _ in range(100):
        found.feed(b"1;" + b"x" * 1000 + b"\r\na\r\n")
    found.feed(b"0\r\n\r\n")
    assert found.whole[0].request.body == b"a" * 100


def test_a_length_past_the_limit_is_refused_before_the_body_comes() -> None:
    found = reader(limit=4)
    found.feed(POST[:-5])
    assert found.arriving is not None
    assert found.arriving.refusal is not None
    assert found.arriving.refusal.status == 413


def test_chunks_past_the_limit_are_thrown_away() -> None:
    found = reader(limit=4)
    found.feed(CHUNKED + GET)
    first, second = found.whole
    assert first.refusal is not None
    assert (first.refusal.status, first.request.body) == (413, b"")
    assert second.refusal is None


def test_a_refused_head_costs_no_memory_and_leaves_the_next_request_readable() -> None:
    found = reader(refused="/c")
    found.feed(CHUNKED[:-5])
    assert found.arriving is not None
    assert found.arriving.body == b""
    found.feed(CHUNKED[-5:] + GET)
    refused, fine = found.whole
    assert (refused.refusal is not None, refused.request.body, fine.request.path) == (True, b"", "/health")


@pytest.mark.parametrize(
    "length", [b"Content-Length: 5\r\n\r\nhello", b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"]
)
def test_a_wish_for_another_protocol_is_passed_over(length: bytes) -> None:
    head = (
        b"POST /a HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"
    )
    data = head + length + GET
    for cut in range(1, len(data)):
        found = reader()
        found.feed(data[:cut])
        found.feed(data[cut:])
        assert whole(found) == [("POST", "/a", b"hello"), ("GET", "/health", b"")], cut
        assert found.whole[0].request.headers["host"] == "h"


@pytest.mark.parametrize(
    ("version", "connection", "kept"),
    [
        ("1.1", "Upgrade", True),
        ("1.1", "close, Upgrade", False),
        ("1.1", "upgrade,Close", False),
        ("1.0", "Upgrade", False),
        ("1.0", "Upgrade, keep-alive", True),
    ],
)
def test_a_wish_for_another_protocol_leaves_what_was_said_of_the_connection(
    version: str, connection: str, kept: bool
) -> None:
    found = reader()
    fields = f"Host: h\r\nConnection: {connection}\r\nUpgrade: websocket\r\nContent-Length: 1\r\n"
    head = f"POST /a HTTP/{version}\r\n{fields}\r\n"
    found.feed(head.encode() + b"x")
    (arrival,) = found.whole
    assert (arrival.request.keep_alive, arrival.request.old) == (kept, version == "1.0")


def test_a_wish_for_another_protocol_is_refused_once() -> None:
    faults: list[Fault] = []

    def refuse(fault: Fault, _request: Request | None) -> Response:
        faults.append(fault)
        return Response(413)

    found = RequestReader(4, lambda _: None, refuse)
    found.feed(b"POST / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 5\r\n\r\nhello")
    assert faults == [Fault.BODY_TOO_LARGE]
