"""How much the router takes on at once, so that a flood makes it refuse and not die.

Two bounds: requests that are read or decided, and bytes of their bodies. A request counts from its headers on, with the
length that they announce, until its verdict: an answer on its way back costs next to nothing here. One request too many
is answered from its headers, before Envoy collects its body, with the error that clients retry.

Waiting is what makes requests many: each that waits for a decision model holds its body and what was read of it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from types import TracebackType
from typing import Any, Final

from router.config.overload import AdmissionSettings
from router.verdict import Fault, Forward, Handler, HeadVerdict
from router.wire.http import Head, Reply
from router.wire.overload import overloaded_reply
from router.wire.surface import classify

MIB: Final = 1024 * 1024
FEWEST_REQUESTS: Final = 64
MOST_REQUESTS: Final = 20_000
BYTES_A_REQUEST: Final = MIB // 2
"""Of the memory that there is, for each request at once: its stream, what is read of it, and its share of Envoy."""
BODIES_SHARE: Final = 16
"""One part in so many of the memory may be bodies: read, a request takes 1 to 7 times its body for as long as it waits,
and 17 times for the moment in which it is read (measured on Chat bodies of 1 KB to 10 MB)."""
INFLATES: Final = 16
"""An encoded body counts as so many times its length, though never as more than the largest body."""


_ENCODING: Final = "content-encoding"


class Bound(StrEnum):
    """What there was no room for. A closed set, because it becomes a metric label."""

    REQUESTS = "requests"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class Limits:
    """`requests` at once, with `buffered_bytes` of bodies in all, none of them over `body_bytes`. `retry_after_s` is
    when a client that is refused may come again."""

    requests: int
    buffered_bytes: int
    body_bytes: int
    retry_after_s: int


def limits(settings: AdmissionSettings, memory_bytes: int, body_bytes: int, retry_after_s: int) -> Limits:
    """The limits of a process that may use so much memory; what is written counts, whatever the memory."""
    requests = min(MOST_REQUESTS, max(FEWEST_REQUESTS, memory_bytes // BYTES_A_REQUEST))
    buffered = max(2 * body_bytes, memory_bytes // BODIES_SHARE)
    return Limits(
        requests if settings.max_requests is None else settings.max_requests,
        buffered if settings.max_buffered_bytes is None else settings.max_buffered_bytes,
        body_bytes,
        retry_after_s,
    )


class Admission:
    """Counts what is taken on. `limits` may be changed at any time; what is taken on already stays. `on_refused` is
    told of each request that there was no room for."""

    __slots__ = ("buffered_bytes", "limits", "on_refused", "requests")

    def __init__(self, limits: Limits, on_refused: Callable[[Bound], None] = lambda bound: None) -> None:
        self.limits = limits
        self.on_refused = on_refused
        self.requests = 0
        """Requests taken on and not settled."""
        self.buffered_bytes = 0
        """Bytes of their bodies, as far as they are known."""

    def begin(self, size: int) -> bool:
        """Take on a request whose body has so many bytes, as far as is known. False, and counted, without room."""
        if self.requests >= self.limits.requests:
            self.on_refused(Bound.REQUESTS)
            return False
        if not self._fits(size):
            self.on_refused(Bound.BYTES)
            return False
        self.requests += 1
        self.buffered_bytes += size
        return True

    def resize(self, before: int, size: int) -> bool:
        """The body of a request taken on has another size. False, and counted, without room: the caller then ends the
        request, with what it was taken on with."""
        if size > before and not self._fits(size - before):
            self.on_refused(Bound.BYTES)
            return False
        self.buffered_bytes += size - before
        return True

    def end(self, size: int) -> None:
        """A request taken on is settled, or gone."""
        self.requests -= 1
        self.buffered_bytes -= size

    def _fits(self, size: int) -> bool:
        return self.buffered_bytes + size <= self.limits.buffered_bytes


def admitting(
    session: Callable[[], AbstractContextManager[Handler]], admission: Admission
) -> Callable[[], AbstractContextManager[Handler]]:
    """The same sessions, each of which takes its request on first, or refuses it."""
    return lambda: AdmittingSession(session(), admission)


class AdmittingSession:
    """The handler of one stream around another. Implements `verdict.Handler`; a context manager, as that one is."""

    __slots__ = ("_admission", "_handler", "_inner", "_size")

    _handler: Handler

    def __init__(self, inner: AbstractContextManager[Handler], admission: Admission) -> None:
        self._inner = inner
        self._admission = admission
        self._size: int | None = None  # of a request taken on

    def __enter__(self) -> AdmittingSession:
        self._handler = self._inner.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._settled()
        self._inner.__exit__(kind, error, trace)

    def on_head(self, head: Head) -> Reply | HeadVerdict:
        """See `Handler.on_head`. Only requests that are read are taken on; others cost nothing."""
        verdict = self._handler.on_head(head)
        if verdict is not HeadVerdict.NEED_BODY:
            return verdict
        size = _announced(head)
        if size > self._admission.limits.body_bytes:
            size = 0  # it is refused for that, in a moment; nothing of it is kept
        elif _ENCODING in head.headers:
            size = self._inflated(head, size)
        if not self._admission.begin(size):
            return self._refusal(head)
        self._size = size
        return verdict

    def on_request(self, head: Head, body: bytes) -> Reply | Forward | Coroutine[Any, Any, Reply | Forward]:
        """See `Handler.on_request`."""
        size = len(body) if _ENCODING not in head.headers else self._inflated(head, len(body))
        if self._size is not None and size != self._size:
            if not self._admission.resize(self._size, size):
                self._settled()
                return self._refusal(head)
            self._size = size
        verdict = self._handler.on_request(head, body)
        if isinstance(verdict, (Forward, Reply)):
            self._settled()
            return verdict
        return self._later(verdict)

    def fault(self, head: Head, fault: Fault) -> Reply:
        """See `Handler.fault`."""
        self._settled()
        return self._handler.fault(head, fault)

    async def _later(self, verdict: Coroutine[Any, Any, Reply | Forward]) -> Reply | Forward:
        try:
            return await verdict
        finally:
            self._settled()

    def _settled(self) -> None:
        if self._size is not None:
            self._admission.end(self._size)
            self._size = None

    def _refusal(self, head: Head) -> Reply:
        return overloaded_reply(classify(head).format, self._admission.limits.retry_after_s)

    def _inflated(self, head: Head, size: int) -> int:
        if head.headers[_ENCODING] == "identity":
            return size
        return max(size, min(self._admission.limits.body_bytes, INFLATES * size))


def _announced(head: Head) -> int:
    """The body's length as the headers give it; 0 where they do not: it then counts from when it is there."""
    written = head.headers.get("content-length")
    return int(written) if written and len(written) < 16 and written.isascii() and written.isdigit() else 0
