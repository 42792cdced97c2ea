"""Which API a request speaks to, told from its method, path and headers alone.

A path is normalised before it is matched, so that no spelling of a model API gets round the router: what an upstream
might fold into `/v1/...` is judged as `/v1/...`, and `Surface.path` is the spelling that the upstream should see.

`/v1` and `/openai` are always guarded; the caller adds where the hosts that other traffic reaches serve an API.

Sources: reference.md 7.1 (paths), ruling 28 (unknown paths).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import unquote

from router.config.plan import ApiFormat
from router.wire.http import Head


class Format(StrEnum):
    """The client's API format. A closed set, because it becomes a metric label."""

    CHAT = "chat"
    RESPONSES = "responses"
    MESSAGES = "messages"

    @property
    def api(self) -> ApiFormat:
        """The same format as `providers.models[].api_format` names it."""
        return _APIS[self]


_APIS: Final = {
    Format.CHAT: ApiFormat.CHAT,
    Format.RESPONSES: ApiFormat.RESPONSES,
    Format.MESSAGES: ApiFormat.MESSAGES,
}


class Kind(StrEnum):
    """What to do with a request. A closed set, because it becomes a metric label.

    `LLM` is read and routed, `LIST_MODELS` answered here, `UNKNOWN` refused because it may carry a prompt that nobody
    here can read, and `OTHER` passed on untouched.
    """

    LLM = "llm"
    LIST_MODELS = "list_models"
    UNKNOWN = "unknown_llm_path"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Surface:
    """Where a request goes in. For `UNKNOWN`, `format` is the best guess of what the client can read.

    `path` is what the upstream should see, query included; `rewritten` says that it differs from what the client sent
    and must replace it (only ever for `LLM`).
    """

    kind: Kind
    format: Format | None
    path: str
    rewritten: bool = False


_LLM_PATHS: Final[Mapping[str, Format]] = {
    "/v1/chat/completions": Format.CHAT,
    "/v1/responses": Format.RESPONSES,
    "/v1/messages": Format.MESSAGES,
}
# What SDKs send, answered without normalising anything.
_USUAL: Final = {path: Surface(Kind.LLM, format, path) for path, format in _LLM_PATHS.items()}
_MODELS: Final = "/v1/models"
_GUARDED: Final = frozenset({"v1", "openai"})
_BODILESS: Final = frozenset({"GET", "HEAD", "OPTIONS", "DELETE", "TRACE"})
_OVERRIDES: Final = ("x-http-method-override", "x-http-method", "x-method-override")

_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#\\]*")
_CONTROLS: Final = dict.fromkeys([*range(0x20), 0x7F])
_MAX_DECODES: Final = 8


def classify(head: Head, roots: Sequence[str] = ()) -> Surface:
    """What kind of request this is, and in which format its client speaks.

    `roots` are guarded like `/v1`: normalised prefixes without a final slash, "" for everything.

    A method that carries a body, a body whatever the method, a method override and a protocol upgrade are all taken as
    ways to hand a prompt to the upstream: under `/v1` or `/openai` they are `UNKNOWN` unless it is a path that is read.
    """
    method = head.method.upper()
    if method == "POST" and (usual := _USUAL.get(head.path)) is not None:
        return usual
    segments = _segments(head.path)
    path = _resolve(segments)
    # Dots may lead out of a root again, but not for a server that cuts the path before them: both readings count.
    if not (
        _GUARDED.intersection(segments[:1])
        or path.split("/", 2)[1] in _GUARDED
        or (roots and (_under(path, roots) or _under("/" + "/".join(segments), roots)))
    ):
        return Surface(Kind.OTHER, None, head.path)
    if method == "POST" and (format := _LLM_PATHS.get(path)) is not None:
        wanted = path + _query(head.path)
        return Surface(Kind.LLM, format, wanted, rewritten=wanted != head.path)
    if method not in _BODILESS or _tunnels(head.headers):
        return Surface(Kind.UNKNOWN, _guess(path, head.headers), head.path)
    if method == "GET" and path == _MODELS:
        return Surface(Kind.LIST_MODELS, _guess(path, head.headers), head.path)
    return Surface(Kind.OTHER, None, head.path)


def normalise_path(path: str) -> str:
    """The one spelling that stands for every path an upstream might take for the same.

    Scheme and authority, query, fragment, `;` parameters, control characters and a trailing slash are dropped; percent
    escapes are decoded until none is left (eight rounds at most); backslashes become slashes, repeated slashes one;
    `.` and `..` are resolved; case is folded. The result starts with a slash. It is for matching, not for forwarding.
    """
    return _resolve(_segments(path))


def _segments(path: str) -> list[str]:
    """What stands between the slashes, cleaned; still with `..`."""
    text = _cut(_ABSOLUTE.sub("", path, count=1) if _ABSOLUTE.match(path) else path)
    for _ in range(_MAX_DECODES):
        if "%" not in text:
            break
        decoded = unquote(text, errors="replace")
        if decoded == text:
            break
        text = decoded
    # A decoded "?" or "#" is data to a strict server and a delimiter to one that decodes twice: judge the shorter path.
    text = _cut(text).translate(_CONTROLS).replace("\\", "/")
    cleaned = (raw.partition(";")[0].strip().casefold() for raw in text.split("/"))
    return [segment for segment in cleaned if segment not in {"", "."}]


def _resolve(segments: list[str]) -> str:
    kept: list[str] = []
    for segment in segments:
        if segment != "..":
            kept.append(segment)
        elif kept:
            kept.pop()
    return "/" + "/".join(kept)


def _cut(text: str) -> str:
    return text.partition("#")[0].partition("?")[0]


def _query(path: str) -> str:
    """The query as the client wrote it, with its question mark, without a fragment."""
    _, mark, query = path.partition("#")[0].partition("?")
    return mark + query


def _under(path: str, roots: Sequence[str]) -> bool:
    return any(path == root or path.startswith(root + "/") for root in roots)


def _tunnels(headers: Mapping[str, str]) -> bool:
    """Whether a request of a method without a body can still deliver a prompt: in a body, by an upgrade or as another
    method.

    `upgrade: h2c`, which curl sends, only asks for HTTP/2.
    """
    return (
        headers.get("upgrade", "h2c").lower() != "h2c"
        or headers.get("content-length", "0") != "0"
        or "transfer-encoding" in headers
        or any(name in headers and headers[name].strip().upper() not in _BODILESS for name in _OVERRIDES)
    )


def _guess(path: str, headers: Mapping[str, str]) -> Format:
    if _under(path, ("/v1/messages",)) or "anthropic-version" in headers:
        return Format.MESSAGES
    if _under(path, ("/v1/responses", "/openai/v1/responses", "/openai/responses")):
        return Format.RESPONSES
    return Format.CHAT
