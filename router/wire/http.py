"""HTTP messages as the gateway hands them on: no protobuf, no framework."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Head(msgspec.Struct, frozen=True):
    """A request's first part. Header names are lower case; a repeated header's values are joined with ", "."""

    method: str
    path: str
    headers: Mapping[str, str] = {}


class Reply(msgspec.Struct, frozen=True):
    """A whole answer that goes straight back to the client. Header names are lower case; no `content-length`."""

    status: int
    headers: Mapping[str, str]
    body: bytes
