"""Request bodies as they were before their content encoding, within a limit.

Only the `content-encoding` header says what a body is; nothing is ever guessed from its bytes. gzip (also `x-gzip`; any
number of members up to `MAX_FRAMES`), br and zstd (likewise frames) are read, alone or two of them stacked. Everything
else, `deflate` with its two meanings included, is refused: a body that cannot be read must not pass unread.

A bomb costs at most the limit and one step of output: 2 MiB for br, 16 MiB for zstd (what 512 bytes can inflate to).
Sources: RFC 9110 8.4 (content codings), RFC 8878 and RFC 9659 (zstd frames, 8 MiB window), RFC 1952 (gzip members).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

import brotli
import zstandard

from router.wire.errors import BadEncoding, BodyTooLarge, UnsupportedEncoding

MAX_LAYERS: Final = 2
MAX_FRAMES: Final = 128
_BROTLI_STEP: Final = 1 << 20
_ZSTD_STEP: Final = 512
_ZSTD_WINDOW: Final = 8 << 20


def decode_body(body: bytes, content_encoding: str | None, limit: int) -> bytes:
    """The plain bytes of `body`, at most `limit` of them (each layer of a stack is bound by it too).

    The same object comes back when there is nothing to decode. An empty body is empty in every encoding. Raises
    `UnsupportedEncoding`, `BodyTooLarge`, or `BadEncoding` for a body that is truncated, damaged or followed by more.
    """
    layers = _layers(content_encoding) if content_encoding else []
    for inflate in reversed(layers):
        if not body:
            break
        body = inflate(body, limit)
    if len(body) > limit:
        raise BodyTooLarge(limit)
    return body


def _layers(content_encoding: str) -> list[Callable[[bytes, int], bytes]]:
    names = [name for item in content_encoding.split(",") if (name := item.strip().lower()) not in {"", "identity"}]
    if len(names) > MAX_LAYERS:
        raise UnsupportedEncoding(f"More than {MAX_LAYERS} stacked content encodings are not supported. Use one.")
    try:
        return [_DECODERS[name] for name in names]
    except KeyError:
        raise UnsupportedEncoding("The content-encoding is not supported. Use gzip, br, zstd, or none.") from None


def _gunzip(body: bytes, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    rest = body
    for _ in range(MAX_FRAMES):
        member = zlib.decompressobj(wbits=31)
        try:
            part = member.decompress(rest, limit - size + 1)
        except zlib.error:
            raise _damaged("gzip") from None
        size += len(part)
        if size > limit:
            raise BodyTooLarge(limit)
        parts.append(part)
        if not member.eof:
            raise _truncated("gzip")
        rest = member.unused_data
        if not rest:
            return parts[0] if len(parts) == 1 else b"".join(parts)
    raise _too_many("gzip")


def _unbrotli(body: bytes, limit: int) -> bytes:
    decoder = brotli.Decompressor()
    parts: list[bytes] = []
    size = 0
    chunk = body
    while not decoder.is_finished():
        try:
            part: bytes = decoder.process(chunk, output_buffer_limit=_BROTLI_STEP)
        except brotli.error:
            raise _damaged("br") from None
        size += len(part)
        if size > limit:
            raise BodyTooLarge(limit)
        if not part and not chunk and decoder.can_accept_more_data():
            raise _truncated("br")
        parts.append(part)
        chunk = b""
    return b"".join(parts)


def _unzstd(body: bytes, limit: int) -> bytes:
    context = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    parts: list[bytes] = []
    size = position = frames = 0
    end = len(body)
    while position < end:
        frames += 1
        if frames > MAX_FRAMES:
            raise _too_many("zstd")
        frame = context.decompressobj()
        while not frame.eof:
            if position >= end:
                raise _truncated("zstd")
            chunk = body[position : position + _ZSTD_STEP]
            try:
                part = frame.decompress(chunk)
            except zstandard.ZstdError:
                raise _damaged("zstd") from None
            position += len(chunk)
            size += len(part)
            if size > limit:
                raise BodyTooLarge(limit)
            if part:
                parts.append(part)
        position -= len(frame.unused_data)
    return b"".join(parts)


def _truncated(name: str) -> BadEncoding:
    return BadEncoding(f"The request body ends in the middle of its {name} data.")


def _damaged(name: str) -> BadEncoding:
    return BadEncoding(f"The request body is not valid {name} data, as its content-encoding header says it is.")


def _too_many(name: str) -> BadEncoding:
    return BadEncoding(f"The request body holds more than {MAX_FRAMES} pieces of {name} data. Send one.")


_DECODERS: Final[dict[str, Callable[[bytes, int], bytes]]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "br": _unbrotli,
    "zstd": _unzstd,
}
