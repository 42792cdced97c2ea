"""The reader of a response: what is whole, what is too much, and what is no response."""

from __future__ import annotations

import pytest

from router.asking.http.reader import MAX_HEAD_BYTES, BadHttp, Response, ResponseReader

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nRetry-After: 1\r\nretry-after: 2\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x\r\nllo\r\n0\r\nTrailer: t\r\n\r\n"
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"
INTERIM = b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: z\r\n\r\n" + PLAIN
CLOSING = b"HTTP/1.1 500 Oh\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
UNBOUNDED = b"HTTP/1.1 200 OK\r\n\r\nhello"


def read(*pieces: bytes, limit: int = 100, error_limit: int = 10) -> ResponseReader:
    reader = ResponseReader(limit, error_limit)
    for piece in pieces:
        reader.feed(piece)
    return reader


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (PLAIN, (200, b"hello", True)),
        (CHUNKED, (200, b"hello", True)),
        (EMPTY, (204, b"", True)),
        (INTERIM, (200, b"hello", True)),
        (CLOSING, (500, b"{}", False)),
    ],
)
def test_a_response_is_the_same_wherever_it_is_cut(data: bytes, expected: tuple[int, bytes, bool]) -> None:
    def brief(reader: ResponseReader) -> tuple[int, bytes | None, bool] | None:
        found = reader.response
        return None if found is None else (found.status, found.body, found.reusable)

    for cut in range(1, len(data)):
        reader = read(data[:cut])
        assert reader.begun
        assert reader.response is None, cut
        reader.feed(data[cut:])
        assert brief(reader) == expected, cut
    assert brief(read(*(bytes([byte]) for byte in data))) == expected


def test_headers_are_lower_case_and_the_first_counts() -> None:
    response = read(INTERIM).response
    assert response is not None
    assert response.headers == {"content-length": "5", "retry-after": "1"}


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    reader = read(UNBOUNDED)
    assert reader.response is None
    reader.end(broken=False)
    assert reader.response == Response(200, {}, b"hello", False)


@pytest.mark.parametrize("data", [b"", PLAIN[:10], PLAIN[:-1], CHUNKED[:-2], INTERIM[:40]])
def test_a_connection_that_ends_too_early_brings_none(data: bytes) -> None:
    reader = read(*([data] if data else []))
    assert reader.begun is bool(data)
    with pytest.raises(BadHttp):
        reader.end(broken=False)


def test_a_broken_connection_ends_no_body() -> None:
    with pytest.raises(BadHttp):
        read(UNBOUNDED).end(broken=True)


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01",
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nA: " + b"x" * MAX_HEAD_BYTES + b"\r\n\r\n",
    ],
)
def test_what_is_no_response_is_refused(data: bytes) -> None:
    with pytest.raises(BadHttp):
        read(data)


@pytest.mark.parametrize(
    "begun",
    [
        b"HTTP/1.1 200 OK\r\nA: ",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nT: ",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;",
    ],
    ids=["a header", "a trailer", "a chunk's extension"],
)
def test_a_field_in_pieces_has_a_limit(begun: bytes) -> None:
    with pytest.raises(BadHttp):
        read(begun, *[b"x" * 1000] * 100)


def test_a_body_in_any_number_of_chunks_is_whole() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    response = read(head, *[b"1;" + b"x" * 1000 + b"\r\na\r\n"] * 100, b"0\r\n\r\n").response
    assert response is not None
    assert response.body == b"a" * 100


@pytest.mark.parametrize("length", [b"Content-Length: 11", b"Transfer-Encoding: chunked"])
@pytest.mark.parametrize(("status", "fits"), [(200, True), (400, False)])
def test_a_body_past_its_limit_is_none_and_its_connection_useless(status: int, fits: bool, length: bytes) -> None:
    body = b"x" * 11 if length.startswith(b"C") else b"6\r\nxxxxxx\r\n5\r\nxxxxx\r\n0\r\n\r\n"
    response = read(b"HTTP/1.1 %d X\r\n%b\r\n\r\n%b" % (status, length, body)).response
    assert response is not None
    assert (response.status, response.body, response.reusable) == (status, b"x" * 11 if fits else None, fits)


def test_what_comes_behind_a_response_leaves_it_and_spoils_the_connection() -> None:
    for more in (b"x", PLAIN):
        response = read(PLAIN + more).response
        assert response is not None
        assert (response.body, response.reusable) == (b"hello", False)
