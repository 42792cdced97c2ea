"""Header blocks: requests are read by the `hpack` library, and the few answers are written by hand.

Reading costs 50 to 100 µs a block in pure Python, and Envoy sends the same block for every stream of a connection. So
we ask for a dynamic table of no bytes, and from the moment the peer's encoder follows, a block means the same wherever
it stands and is read once. Answers use the static table alone.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final
from urllib.parse import quote

import msgspec
from hpack import Decoder

from router.gateway.h2.frames import ConnectionFault, ErrorCode

MAX_LIST_BYTES: Final = 64 * 1024
"""Largest list of request headers, counted as RFC 9113 (section 6.5.2) counts it."""
_DEFAULT_TABLE: Final = 4096
_MEMO_BLOCKS: Final = 256
_MEMO_BLOCK_BYTES: Final = 2048

_FORBIDDEN: Final = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"})
_PSEUDO: Final = frozenset({b":method", b":scheme", b":path", b":authority"})
_REQUIRED: Final = frozenset({b":method", b":scheme", b":path"})


class Request(msgspec.Struct, frozen=True):
    """What a stream's first headers ask for."""

    method: bytes
    path: bytes
    content_type: bytes

    @property
    def is_grpc(self) -> bool:
        """Whether the content type is one of gRPC's."""
        return self.content_type == b"application/grpc" or self.content_type.startswith(
            (b"application/grpc+", b"application/grpc;")
        )


class HeaderReader:
    """Reads the header blocks of one connection, which must all be given to it, in order."""

    __slots__ = ("_decoder", "_memo")

    def __init__(self) -> None:
        self._decoder = Decoder(MAX_LIST_BYTES)
        self._memo: dict[bytes, Request | None] = {}

    def forbid_table(self) -> None:
        """The peer has acknowledged that its encoder may keep no table."""
        self._decoder.max_allowed_table_size = 0

    def read(self, block: bytes) -> Request | None:
        """The request in `block`; None when it is malformed. Raises ConnectionFault when it cannot be decoded."""
        # A size of zero, once it is agreed on, is for ever; and then no block depends on another.
        stateless = self._decoder.header_table_size == 0 and self._decoder.max_allowed_table_size == 0
        if stateless and block in self._memo:
            return self._memo[block]
        request = _request(self._decode(block))
        if stateless and len(block) <= _MEMO_BLOCK_BYTES:
            if len(self._memo) >= _MEMO_BLOCKS:
                self._memo.clear()
            self._memo[block] = request
        return request

    def skip(self, block: bytes) -> None:
        """Read trailers, or the headers of a stream that is refused, for what they do to the decoder."""
        self._decode(block)

    def _decode(self, block: bytes) -> list[tuple[bytes, bytes]]:
        try:
            return [(field[0], field[1]) for field in self._decoder.decode(block, raw=True)]
        except Exception:  # hostile bytes make the library raise more than it documents
            raise ConnectionFault(ErrorCode.COMPRESSION_ERROR, "a header block cannot be decoded") from None


def _request(fields: list[tuple[bytes, bytes]]) -> Request | None:
    """What the fields ask for, if they keep the rules of RFC 9113, sections 8.2 and 8.3."""
    pseudo: dict[bytes, bytes] = {}
    content_type = b""
    regular = False
    for name, value in fields:
        if name.startswith(b":"):
            if regular or name not in _PSEUDO or name in pseudo:
                return None
            pseudo[name] = value
            continue
        regular = True
        if not name or name != name.lower() or name in _FORBIDDEN or (name == b"te" and value != b"trailers"):
            return None
        if name == b"content-type":
            content_type = value
    if not pseudo.keys() >= _REQUIRED or not pseudo[b":path"]:
        return None
    return Request(pseudo[b":method"], pseudo[b":path"], content_type)


def _integer(value: int) -> bytes:
    """An integer with a prefix of seven bits and the high bit clear."""
    if value < 0x7F:
        return bytes((value,))
    out, value = bytearray(b"\x7f"), value - 0x7F
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _literal(name: bytes, value: bytes) -> bytes:
    return b"\x00" + _integer(len(name)) + name + _integer(len(value)) + value


_PRINTABLE: Final = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")
NO_TABLE: Final = b"\x20"
"""Says that this encoder keeps no table. It stands before the first block of a connection, whatever the peer allows."""
RESPONSE: Final = b"\x88" + _literal(b"content-type", b"application/grpc")
""":status 200, and the content type."""


@lru_cache(maxsize=256)
def trailers(status: int, message: str = "") -> bytes:
    """The end of a stream. `message` is one of our fixed texts."""
    block = _literal(b"grpc-status", b"%d" % status)
    return block + _literal(b"grpc-message", quote(message, safe=_PRINTABLE).encode()) if message else block


def plain_status(status: int) -> bytes:
    """An answer to what is no gRPC."""
    return b"\x08" + _integer(3) + b"%d" % status
