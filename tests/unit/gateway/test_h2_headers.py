"""Header blocks: what is understood, what is malformed, and that blocks are remembered only while that is right."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hpack import Decoder, Encoder, HeaderTuple

from router.gateway.h2 import headers
from router.gateway.h2.frames import ConnectionFault, ErrorCode
from router.gateway.h2.headers import HeaderReader, Request
from tests.support.h2_peer import PROCESS, block, fields


def read(**changes: str | None) -> Request | None:
    return HeaderReader().read(block(fields(PROCESS, **changes)))


def text(decoded: Iterable[HeaderTuple]) -> dict[str, str]:
    return {str(field[0]): str(field[1]) for field in decoded}


def test_a_request() -> None:
    request = read()
    assert request == Request(b"POST", PROCESS.encode(), b"application/grpc")
    assert request.is_grpc


@pytest.mark.parametrize(
    ("content_type", "grpc"),
    [
        ("application/grpc+proto", True),
        ("application/grpc; charset=x", True),
        ("application/grpc-web", False),
        ("application/json", False),
        (None, False),
    ],
)
def test_content_types(content_type: str | None, grpc: bool) -> None:
    request = read(content_type=content_type)
    assert request is not None
    assert request.is_grpc is grpc


@pytest.mark.parametrize(
    "changes",
    [
        {"p_method": None},
        {"p_scheme": None},
        {"p_path": None},
        {"p_path": ""},
        {"p_status": "200"},
        {"te": "gzip"},
        {"connection": "close"},
        {"Upper": "case"},
    ],
)
def test_malformed_requests(changes: dict[str, str | None]) -> None:
    assert read(**changes) is None


def test_pseudo_headers_come_first_and_once() -> None:
    assert HeaderReader().read(block([*fields(), (":authority", "late")])) is None
    assert HeaderReader().read(block([(":path", "/a"), *fields()])) is None


@pytest.mark.parametrize(
    "hostile", [b"\x40", b"\xff\xff\xff\xff\xff\xff", b"\x80", b"\xbf", b"\x00\x01a\x85\xff", b"\x10"]
)
def test_what_cannot_be_decoded_ends_the_connection(hostile: bytes) -> None:
    with pytest.raises(ConnectionFault) as fault:
        HeaderReader().read(hostile)
    assert fault.value.code is ErrorCode.COMPRESSION_ERROR


def test_a_small_block_that_grows_large_is_refused() -> None:
    reader = HeaderReader()
    bomb = b"\x40\x01a" + headers._integer(4000) + b"x" * 4000 + b"\xbe" * 100
    with pytest.raises(ConnectionFault):
        reader.read(bomb)


def test_with_a_table_nothing_is_remembered() -> None:
    """The same bytes mean another thing when the table has moved on."""
    encoder, reader = Encoder(), HeaderReader()
    first = encoder.encode(fields("/one"))
    assert reader.read(first) == Request(b"POST", b"/one", b"application/grpc")
    repeated = encoder.encode(fields("/one"))
    assert reader.read(repeated) == Request(b"POST", b"/one", b"application/grpc")
    for word in ("two", "three"):
        reader.read(encoder.encode(fields(f"/{word}")))
    again = reader.read(repeated)
    assert again != Request(b"POST", b"/one", b"application/grpc")
    assert not reader._memo


def test_without_a_table_a_block_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = HeaderReader()
    reader.forbid_table()
    first = reader.read(b"\x20" + block(fields()))
    known = reader.read(block(fields()))
    monkeypatch.setattr(HeaderReader, "_decode", lambda *_: pytest.fail("decoded again"))
    assert reader.read(block(fields())) is known
    assert first == known


def test_an_encoder_that_agreed_to_keep_no_table_must_say_so() -> None:
    reader = HeaderReader()
    reader.read(block(fields()))
    reader.forbid_table()
    with pytest.raises(ConnectionFault):
        reader.read(block(fields()))


def test_what_is_remembered_is_bounded() -> None:
    reader = HeaderReader()
    reader.forbid_table()
    reader.read(b"\x20" + block(fields()))
    for number in range(600):
        reader.read(block(fields(f"/{number}")))
    reader.read(block(fields("/" + "x" * 3000)))
    assert len(reader._memo) <= 256
    assert all(len(known) < 2100 for known in reader._memo)


def test_answers_are_what_a_client_reads() -> None:
    decoder = Decoder()
    assert text(decoder.decode(headers.NO_TABLE + headers.RESPONSE)) == {
        ":status": "200",
        "content-type": "application/grpc",
    }
    assert text(decoder.decode(headers.trailers(0))) == {"grpc-status": "0"}
    told = text(decoder.decode(headers.trailers(13, 'a 100% "long" text, ü ' + "x" * 200)))
    assert told == {"grpc-status": "13", "grpc-message": 'a 100%25 "long" text, %C3%BC ' + "x" * 200}
    assert text(decoder.decode(headers.plain_status(415))) == {":status": "415"}
