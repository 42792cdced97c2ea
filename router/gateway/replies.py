"""Builds the messages that go back to Envoy, ready serialised.

Answers that say nothing are built once. Bodies are not put through protobuf: a message is the same on the wire as the
concatenation of its parts, so the few bytes around a body are written by hand and the body is copied once instead of
three times (64 KiB: 2 µs instead of 100; 8 MiB: under 1 ms instead of 5).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any

from router.gateway.proto.ext_proc_pb2 import (
    BodyResponse,
    CommonResponse,
    HeaderMutation,
    HeadersResponse,
    HeaderValueOption,
    ProcessingMode,
    ProcessingResponse,
    TrailersResponse,
)
from router.wire.http import Reply

METADATA_NAMESPACE = "pointsman"
"""Namespace of the dynamic metadata: Envoy reads it by `%DYNAMIC_METADATA(pointsman:key)%`."""

CHUNK_BYTES = 64 * 1024
"""Largest piece of a streamed body: the upper bound that Envoy's API documents recommend. Larger pieces would also hold
up the other streams of the connection."""

REPLY_DETAILS = "pointsman_reply"
"""How Envoy's access log names an answer of ours (`%RESPONSE_CODE_DETAILS%`)."""

REQUEST_HEADERS = ProcessingResponse(request_headers=HeadersResponse()).SerializeToString()
REQUEST_BODY = ProcessingResponse(request_body=BodyResponse()).SerializeToString()
REQUEST_TRAILERS = ProcessingResponse(request_trailers=TrailersResponse()).SerializeToString()
RESPONSE_HEADERS = ProcessingResponse(response_headers=HeadersResponse()).SerializeToString()
RESPONSE_HEADERS_THEN_BODY = ProcessingResponse(
    response_headers=HeadersResponse(), mode_override=ProcessingMode(response_body_mode=ProcessingMode.STREAMED)
).SerializeToString()
"""The body is to be shown piece by piece: an answer that streams goes on streaming."""
RESPONSE_BODY = ProcessingResponse(response_body=BodyResponse()).SerializeToString()
RESPONSE_TRAILERS = ProcessingResponse(response_trailers=TrailersResponse()).SerializeToString()

_OVERWRITE = HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD
# Their values are the machine's business: a wrong length makes Envoy fail the request.
_FRAMING = frozenset({"content-length", "transfer-encoding"})


Structs = Mapping[str, Mapping[str, Any]]
"""JSON values by namespace of the dynamic metadata."""


class Direction(Enum):
    """Which half of the exchange a body belongs to. The value is the field's tag in ProcessingResponse."""

    REQUEST = b"\x1a"  # request_body = 3
    RESPONSE = b"\x22"  # response_body = 4


class Changes:
    """Changes of one message's headers. Names are lower-cased; a name that is set is not removed as well."""

    __slots__ = ("remove", "set")

    def __init__(self, set_headers: Mapping[str, str] | None = None, remove: Iterable[str] = ()) -> None:
        self.set = {name.lower(): value for name, value in (set_headers or {}).items()}
        names = dict.fromkeys(name.lower() for name in remove)
        for name in _FRAMING:
            self.set.pop(name, None)
            names.pop(name, None)
        self.remove = [name for name in names if name not in self.set]

    def __bool__(self) -> bool:
        return bool(self.set or self.remove)

    def write(self, mutation: HeaderMutation) -> None:
        """Add the changes to `mutation`."""
        mutation.remove_headers.extend(self.remove)
        for name, value in self.set.items():
            set_header(mutation, name, value)


def set_header(mutation: HeaderMutation, name: str, value: str) -> None:
    """Overwrite one header. The only place that writes a header value, and it writes `raw_value` alone."""
    option = mutation.set_headers.add()
    option.header.key = name
    option.header.raw_value = clean(value).encode()
    option.append_action = _OVERWRITE
    if not value:
        option.keep_empty_value = True


def clean(value: str) -> str:
    """`value` with a space for everything that a header cannot carry: line breaks, controls, lone surrogates.

    Without this one odd character in, say, a model's answer would fail the whole request in Envoy, or add a header.
    """
    if value.isprintable():
        return value
    return "".join(char if char.isprintable() or char == "\t" else " " for char in value)


def request_headers(changes: Changes, *, clear_route_cache: bool, mode: ProcessingMode | None = None) -> bytes:
    """Continue after the request's headers."""
    if not changes and not clear_route_cache and mode is None:
        return REQUEST_HEADERS
    response = ProcessingResponse()
    response.request_headers.SetInParent()
    _fill(response.request_headers.response, changes, clear_route_cache)
    if mode is not None:
        response.mode_override.CopyFrom(mode)
    return response.SerializeToString()


def forward_headers(
    changes: Changes,
    metadata: Mapping[str, str],
    *,
    clear_route_cache: bool,
    drop_length: bool,
    structs: Structs | None = None,
) -> bytes:
    """The decision, where the headers' answer carries it (streamed bodies)."""
    response = ProcessingResponse()
    common = response.request_headers.response
    _fill(common, changes, clear_route_cache)
    if drop_length:
        common.header_mutation.remove_headers.append("content-length")
    _metadata(response, metadata)
    return response.SerializeToString() + _structs_part(structs)


def forward_body(
    set_headers: Mapping[str, str],
    remove: Iterable[str],
    metadata: Mapping[str, str],
    body: bytes | None,
    *,
    clear_route_cache: bool,
    structs: Structs | None = None,
) -> bytes:
    """The decision, where the answer to the whole body carries it. A changed body brings its `content-length`.

    The message is put together from parts that recur from request to request and are kept serialised: protobuf merges
    what stands in one message several times.
    """
    headers = _header_part(tuple(set_headers.items()), tuple(remove), clear_route_cache)
    told = _metadata_part(tuple(metadata.items()))
    if structs:
        told += _structs_part(structs)
    if body is None:
        return headers + told
    size = len(body)
    return b"".join((headers, told, _before_body(size), body))


@lru_cache(maxsize=1024)
def _header_part(set_headers: tuple[tuple[str, str], ...], remove: tuple[str, ...], clear_route_cache: bool) -> bytes:
    response = ProcessingResponse()
    _fill(response.request_body.response, Changes(dict(set_headers), remove), clear_route_cache)
    return response.SerializeToString()


@lru_cache(maxsize=1024)
def _metadata_part(metadata: tuple[tuple[str, str], ...]) -> bytes:
    response = ProcessingResponse()
    _metadata(response, dict(metadata))
    return response.SerializeToString()


@lru_cache(maxsize=1024)
def _before_body(size: int) -> bytes:
    """What stands before a whole body that was changed: its length, told to the backend and to protobuf."""
    response = ProcessingResponse()
    set_header(response.request_body.response.header_mutation, "content-length", str(size))
    return response.SerializeToString() + _opening(_WHOLE_BODY, size)


def streamed_body(direction: Direction, body: bytes, *, end_of_stream: bool) -> Iterator[bytes]:
    """The answers that carry `body` in full duplex mode, in pieces of at most CHUNK_BYTES, made as they are asked for.

    An empty body gives one empty piece, so that an end of stream always has something to travel on.
    """
    view = memoryview(body)
    around = (*_STREAMED_BODY, direction.value)
    for start in range(0, max(len(body), 1), CHUNK_BYTES):
        piece = view[start : start + CHUNK_BYTES]
        field = _opening(_STREAMED_PIECE, len(piece))
        end = _END_OF_STREAM if end_of_stream and start + CHUNK_BYTES >= len(body) else b""
        yield b"".join((_opening(around, len(field) + len(piece) + len(end)), field, piece, end))


def immediate(reply: Reply) -> bytes:
    """An answer that goes straight to the client."""
    response = ProcessingResponse()
    answer = response.immediate_response
    answer.status.code = reply.status if 200 <= reply.status <= 999 else 500
    Changes(reply.headers).write(answer.headers)
    answer.body = reply.body
    answer.details = REPLY_DETAILS
    return response.SerializeToString()


def _fill(common: CommonResponse, changes: Changes, clear_route_cache: bool) -> None:
    common.SetInParent()
    if changes:
        changes.write(common.header_mutation)
    if clear_route_cache:
        common.clear_route_cache = True


def _structs_part(structs: Structs | None) -> bytes:
    """Metadata of other namespaces. Merged with the rest: protobuf adds up the entries of a map."""
    if not structs:
        return b""
    response = ProcessingResponse()
    for namespace, struct in structs.items():
        response.dynamic_metadata.fields[namespace].struct_value.update(struct)
    return response.SerializeToString()


def _metadata(response: ProcessingResponse, metadata: Mapping[str, str]) -> None:
    if not metadata:
        return
    fields = response.dynamic_metadata.fields[METADATA_NAMESPACE].struct_value.fields
    for key, value in metadata.items():
        fields[clean(key)].string_value = clean(value)


# Tags of the messages around a body, innermost first: BodyMutation.body = 1, CommonResponse.body_mutation = 3,
# BodyResponse.response = 1, ProcessingResponse.request_body = 3.
_WHOLE_BODY = (b"\x0a", b"\x1a", b"\x0a", Direction.REQUEST.value)
# StreamedBodyResponse.body = 1 and .end_of_stream = 2; BodyMutation.streamed_response = 3, then as above.
_STREAMED_PIECE = (b"\x0a",)
_END_OF_STREAM = b"\x10\x01"
_STREAMED_BODY = (b"\x1a", b"\x1a", b"\x0a")


def _opening(tags: tuple[bytes, ...], length: int) -> bytes:
    """What stands before `length` bytes that are nested in the fields of these tags, innermost first."""
    opening = b""
    for tag in tags:
        opening = tag + _varint(length + len(opening)) + opening
    return opening


def _varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    if number < 0x4000:
        return bytes((number & 0x7F | 0x80, number >> 7))
    return bytes((number & 0x7F | 0x80,)) + _varint(number >> 7)
