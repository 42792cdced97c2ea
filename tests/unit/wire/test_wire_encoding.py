from __future__ import annotations

import gzip
import os
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard

from router.wire.encoding import MAX_FRAMES, decode_body
from router.wire.errors import BadEncoding, BodyTooLarge, ErrorCode, UnsupportedEncoding

PLAIN = b'{"model":"auto","text":"' + bytes(range(32, 127)) * 40 + b'"}'
LIMIT = 1 << 20


def streamed_zstd(data: bytes) -> bytes:
    """A frame that does not say how long its content is, as a streaming client writes it."""
    writer = zstandard.ZstdCompressor().compressobj()
    return writer.compress(data) + writer.flush()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "br": lambda data: bytes(brotli.compress(data, quality=4)),
    "zstd": streamed_zstd,
}
parametrize_codings = pytest.mark.parametrize("coding", PACKERS)


@pytest.mark.parametrize("coding", [None, "", "identity", " Identity , identity", ","])
def test_a_plain_body_comes_back_as_it_is(coding: str | None) -> None:
    assert decode_body(PLAIN, coding, LIMIT) is PLAIN


@parametrize_codings
def test_each_coding_is_read(coding: str) -> None:
    assert decode_body(PACKERS[coding](PLAIN), coding, LIMIT) == PLAIN
    assert decode_body(PACKERS[coding](PLAIN), f"identity, {coding.upper()} ", LIMIT) == PLAIN
    assert decode_body(PACKERS[coding](b""), coding, LIMIT) == b""


@parametrize_codings
def test_data_that_does_not_compress_is_read(coding: str) -> None:
    noise = os.urandom(700_000)
    assert decode_body(PACKERS[coding](noise), coding, LIMIT) == noise


def test_zstd_with_a_known_size_is_read() -> None:
    assert decode_body(zstandard.ZstdCompressor(level=19).compress(PLAIN), "zstd", LIMIT) == PLAIN


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd", "gzip, br"])
def test_an_empty_body_is_empty_in_every_coding(coding: str) -> None:
    assert decode_body(b"", coding, LIMIT) == b""


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_several_members_or_frames_are_one_body(coding: str) -> None:
    pack = PACKERS[coding]
    assert decode_body(pack(PLAIN[:100]) + pack(b"") + pack(PLAIN[100:]), coding, LIMIT) == PLAIN


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_many_empty_pieces_are_refused(coding: str) -> None:
    with pytest.raises(BadEncoding):
        decode_body(PACKERS[coding](b"") * (MAX_FRAMES + 1), coding, LIMIT)


def test_two_layers_are_unpacked_in_their_order() -> None:
    assert decode_body(brotli.compress(gzip.compress(PLAIN)), "gzip, br", LIMIT) == PLAIN
    with pytest.raises(BadEncoding):
        decode_body(brotli.compress(gzip.compress(PLAIN)), "br, gzip", LIMIT)


@pytest.mark.parametrize("coding", ["deflate", "compress", "gzip, deflate", "br;q=1", "aws-chunked", "gzip, br, zstd"])
def test_other_codings_are_refused(coding: str) -> None:
    with pytest.raises(UnsupportedEncoding) as caught:
        decode_body(PLAIN, coding, LIMIT)
    assert caught.value.code is ErrorCode.UNSUPPORTED_ENCODING


def test_the_header_decides_and_nothing_is_guessed() -> None:
    packed = gzip.compress(PLAIN)
    assert decode_body(packed, None, LIMIT) is packed
    assert decode_body(packed, "identity", LIMIT) is packed
    for coding in PACKERS:
        with pytest.raises(BadEncoding):
            decode_body(PLAIN, coding, LIMIT)


@parametrize_codings
def test_a_body_cut_anywhere_is_refused(coding: str) -> None:
    packed = PACKERS[coding](PLAIN)
    for end in range(1, len(packed)):
        with pytest.raises(BadEncoding):
            decode_body(packed[:end], coding, LIMIT)


@parametrize_codings
@pytest.mark.parametrize("tail", [b"\0", b"tail", b'{"model":"b"}'])
def test_what_follows_is_refused(coding: str, tail: bytes) -> None:
    with pytest.raises(BadEncoding):
        decode_body(PACKERS[coding](PLAIN) + tail, coding, LIMIT)


def test_a_damaged_checksum_is_refused() -> None:
    packed = bytearray(gzip.compress(PLAIN))
    packed[-5] ^= 1
    with pytest.raises(BadEncoding):
        decode_body(bytes(packed), "gzip", LIMIT)


def test_raw_deflate_is_not_gzip() -> None:
    with pytest.raises(BadEncoding):
        decode_body(zlib.compress(PLAIN), "gzip", LIMIT)


@parametrize_codings
def test_the_limit_is_exact(coding: str) -> None:
    packed = PACKERS[coding](b"x" * 1000)
    assert len(decode_body(packed, coding, 1000)) == 1000
    with pytest.raises(BodyTooLarge) as caught:
        decode_body(packed, coding, 999)
    assert "999 bytes" in caught.value.message


def test_the_limit_holds_for_plain_bodies() -> None:
    with pytest.raises(BodyTooLarge):
        decode_body(PLAIN, None, len(PLAIN) - 1)


@parametrize_codings
def test_a_bomb_is_stopped_while_it_inflates(coding: str) -> None:
    bomb = PACKERS[coding](bytes(48 << 20))
    tracemalloc.start()
    try:
        with pytest.raises(BodyTooLarge):
            decode_body(bomb, coding, LIMIT)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 36 << 20  # the limit, and one step while its buffer grows


def test_a_bomb_of_bombs_is_stopped_at_its_first_layer() -> None:
    bomb = brotli.compress(gzip.compress(bytes(1 << 30 >> 4)))
    with pytest.raises(BodyTooLarge):
        decode_body(bomb, "gzip, br", 1000)


def test_a_zstd_window_beyond_what_http_allows_is_refused() -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=27)
    writer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    packed = writer.compress(PLAIN) + writer.flush()
    with pytest.raises(BadEncoding):
        decode_body(packed, "zstd", LIMIT)


def test_an_unknown_coding_is_refused_before_there_is_a_body() -> None:
    with pytest.raises(UnsupportedEncoding):
        decode_body(b"", "deflate", 0)
