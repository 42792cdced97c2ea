"""Reads a request's head from Envoy's messages, and finds the headers in it that only the router may set."""

from __future__ import annotations

from router.gateway.proto.ext_proc_pb2 import HeaderMap
from router.wire.http import Head

SELECTED_MODEL = "x-selected-model"
"""The header that Envoy's routes match."""

# Nearly every header is settled by these, without a copy of its name.
_OWNED_STARTS = ("x-vsr", "x_vsr", "x-selected", "x_selected")


def is_router_owned(name: str) -> bool:
    """Whether a client may not send the header `name`: `x-vsr-*`, `x-selected-model` and their underscore twins.

    Twins count because some backends read `x_vsr_a` and `x-vsr-a` as one name.
    """
    name = name.lower().replace("_", "-")
    return name.startswith("x-vsr-") or name == SELECTED_MODEL


def read_head(headers: HeaderMap, *, body_follows: bool = False) -> tuple[Head, tuple[str, ...]]:
    """The head in a headers message, and the names of the router-owned headers that the client sent.

    `:authority` is given as `host`. `body_follows` shows as `transfer-encoding: chunked` where no length is told: Envoy
    takes that header away, and HTTP/2 has none. Never raises: a missing `:method` or `:path` is read as empty.
    """
    values: dict[str, str] = {}
    owned: list[str] = []
    for header in headers.headers:
        name = header.key.lower()
        raw = header.raw_value
        value = text(raw) if raw else header.value
        if name in values:
            values[name] = f"{values[name]}, {value}"
            continue
        values[name] = value
        if name.startswith(_OWNED_STARTS) and is_router_owned(name):
            owned.append(name)
    method = values.pop(":method", "")
    path = values.pop(":path", "")
    authority = values.pop(":authority", None)
    if authority is not None:
        values.setdefault("host", authority)
    for name in [name for name in values if name.startswith(":")]:
        del values[name]
    if body_follows and "content-length" not in values:
        values["transfer-encoding"] = "chunked"
    return Head(method, path, values), tuple(owned)


def text(raw: bytes) -> str:
    """Header bytes as text. HTTP promises no encoding: what is not UTF-8 is read byte by byte, so nothing fails."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def read_answer_head(headers: HeaderMap) -> tuple[int, dict[str, str]]:
    """Status and headers of an answer; 0 where none is told."""
    values = {header.key.lower(): text(header.raw_value) or header.value for header in headers.headers}
    status = values.pop(":status", "")
    return int(status) if status.isascii() and status.isdigit() else 0, values
