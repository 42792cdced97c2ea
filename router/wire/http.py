"""HTTP messages as the gateway hands them on: no protobuf, no framework."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Head:
    """A request's first part. Header names are lower case; a repeated header's values are joined with ", "."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer that goes straight back to the client. Header names are lower case; no `content-length`."""

    status: int
    headers: Mapping[str, str]
    body: bytes
