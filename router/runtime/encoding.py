"""Request bodies as they were before `Content-Encoding`, within a limit that holds for the decoded size too."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import zstandard

_WINDOW = 1 << 25


class UnknownEncoding(Exception):
    """An encoding that is not known here, or more than one."""


class BadEncoding(Exception):
    """Bytes that are not in the encoding that they are said to be in, or not all of them."""


class TooLarge(Exception):
    """The decoded body is larger than the limit."""


def decode(data: bytes, encodings: Sequence[str], limit: int) -> bytes:
    """Undo `Content-Encoding` header values (identity, gzip, zstd; one coding).

    Raises UnknownEncoding, BadEncoding and TooLarge.
    """
    codings = [part.strip().lower() for value in encodings for part in value.split(",") if part.strip()]
    codings = [coding for coding in codings if coding != "identity"]
    if not codings:
        return data
    if len(codings) > 1:
        raise UnknownEncoding("one content encoding at most")
    if codings[0] in ("gzip", "x-gzip"):
        return _gzip(data, limit)
    if codings[0] == "zstd":
        return _zstd(data, limit)
    raise UnknownEncoding("content encodings are gzip and zstd")


def _gzip(data: bytes, limit: int) -> bytes:
    unzip = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        plain = unzip.decompress(data, limit + 1)
    except zlib.error:
        raise BadEncoding("the body is not gzip") from None
    if len(plain) > limit:
        raise TooLarge
    if not unzip.eof or unzip.unused_data:
        raise BadEncoding("the gzip body is cut short or has bytes after its end")
    return plain


def _zstd(data: bytes, limit: int) -> bytes:
    try:
        reader = zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(data, read_across_frames=False)
        plain = reader.read(limit + 1)
        if len(plain) > limit:
            raise TooLarge
        whole = _whole_frame(data, len(plain))
    except zstandard.ZstdError:
        raise BadEncoding("the body is not zstd") from None
    if not whole:
        raise BadEncoding("the zstd body is cut short")
    return bytes(plain)


def _whole_frame(data: bytes, size: int) -> bool:
    """Whether a frame that came to `size` bytes is whole, which its reader does not tell: it may say how many it is."""
    said = zstandard.get_frame_parameters(data).content_size
    if said != zstandard.CONTENTSIZE_UNKNOWN:
        return size == said
    again = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()
    again.decompress(data)
    return again.eof
