"""What a stream's first message says: read once for all streams that begin alike.

Envoy sends few headers to the router (`forward_rules`), so the requests of one client differ in nothing but the length
of their bodies. Such a message is recognised by its other bytes and not read again. Protobuf writes a length before
every value, so two messages that agree outside the digits of `content-length` have the same structure.
"""

from __future__ import annotations

from typing import Final, Self

import msgspec

from router.gateway.heads import read_head, text
from router.gateway.proto.ext_proc_pb2 import HttpHeaders, ProcessingMode, ProcessingRequest
from router.wire.http import Head

MOST_BYTES: Final = 2048
"""Longer messages are not kept."""
MOST: Final = 512
"""How many are kept. Then all are forgotten: cheaper than to know which was read last, and hardly ever due."""

_LENGTH: Final = "content-length"
_MARK: Final = b"\x0a\x0econtent-length\x1a"
"""HeaderValue.key = 1 with the name, and the tag of raw_value = 3; one byte of length and the digits follow."""


class Filter(msgspec.Struct, frozen=True):
    """What Envoy says about its filter in the first message of a stream. `early`: it sends a body without waiting for
    the headers' answer."""

    request_body_mode: ProcessingMode.BodySendMode
    response_body_mode: ProcessingMode.BodySendMode
    early: bool

    @classmethod
    def of(cls, message: ProcessingRequest) -> Self | None:
        """What `message` says, if it says anything."""
        if not message.HasField("protocol_config"):
            return None
        config = message.protocol_config
        early = config.send_body_without_waiting_for_header_response
        return cls(config.request_body_mode, config.response_body_mode, early)


class Opening(msgspec.Struct, frozen=True):
    """A headers message of a request.

    `owned` names the router-owned headers that the client sent, `ended` says that no body follows, `observed` that
    Envoy would not heed any answer.
    """

    head: Head
    owned: tuple[str, ...]
    ended: bool
    filter: Filter | None = None
    observed: bool = False

    @classmethod
    def of(cls, message: ProcessingRequest) -> Self:
        """What `message`, whose phase is `request_headers`, says."""
        headers: HttpHeaders = message.request_headers
        head, owned = read_head(headers.headers, body_follows=not headers.end_of_stream)
        return cls(head, owned, headers.end_of_stream, Filter.of(message), message.observability_mode)


class Openings:
    """Those that were read. For one thread."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[bytes, Opening] = {}

    def known(self, data: bytes) -> Opening | None:
        """What a serialised ProcessingRequest says, if one like it was read before."""
        start, stop = _digits(data)
        opening = self._kept.get(data if start < 0 else data[:start] + data[stop:])
        if opening is None or start < 0:
            return opening
        head = opening.head
        headers = {**head.headers, _LENGTH: text(data[start:stop])}
        return Opening(
            Head(head.method, head.path, headers), opening.owned, opening.ended, opening.filter, opening.observed
        )

    def keep(self, data: bytes, opening: Opening) -> None:
        """Remember what `data` says, where its like may come again."""
        start, stop = _digits(data)
        if len(data) > MOST_BYTES:
            return
        if start >= 0 and opening.head.headers.get(_LENGTH) != text(data[start:stop]):
            return  # told twice, or not by a header of that name
        if len(self._kept) >= MOST:
            self._kept.clear()
        self._kept[data if start < 0 else data[:start] + data[stop:]] = opening


def _digits(data: bytes) -> tuple[int, int]:
    """Where the value of `content-length` stands in a message; -1 where it stands nowhere."""
    mark = data.find(_MARK, 0, MOST_BYTES)
    if mark < 0:
        return -1, -1
    start = mark + len(_MARK) + 1
    length = data[start - 1] if start <= len(data) else 0
    return (start, start + length) if 0 < length < 0x80 and start + length <= len(data) else (-1, -1)
