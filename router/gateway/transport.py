"""What the transports share: the interface of a server, its options, and decisions that have a deadline."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from router.gateway.commands import Command, Decide, Finish, Status
from router.gateway.health import Health
from router.gateway.machine import StreamMachine
from router.gateway.openings import Openings
from router.gateway.options import MachineOptions
from router.observe.logs import place
from router.verdict import Fault, Forward, Handler
from router.wire.http import Reply

SERVICE = "envoy.service.ext_proc.v3.ExternalProcessor"
MESSAGE_HEADROOM = 1024 * 1024
"""Bytes of a gRPC message beyond the largest body: headers, attributes, a body that grew by an edit."""

DEADLINE_CHECK_S = 0.5
"""How late a decision's deadline may be noticed."""

log = logging.getLogger("pointsman.gateway")


class ListenError(OSError):
    """The server could not listen on its address."""


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Settings of a server; times in seconds.

    `deadline_s`: longest time of one decision, above every deadline of a recipe; then the client gets the handler's
    DEADLINE fault (`set_deadline` changes it). `settle_s`: how long a draining server goes on taking streams after it
    began to say NOT_SERVING; longer than the health checks' interval. `max_connection_age_s`: ask Envoy to connect anew
    after this time, so that load spreads over replicas behind one address; None never does.
    """

    machine: MachineOptions = field(default_factory=MachineOptions)
    deadline_s: float = 60.0
    settle_s: float = 3.0
    max_connection_age_s: float | None = None


class Server(ABC):
    """Serves `handler` on `address`: "host:port" (port 0 picks one) or "unix:/path".

    `on_stream` is called with +1 and -1 as streams begin and end, `on_error` with the status of each stream that ends
    without a verdict. `session` gives the handler of one stream for as long as that lasts; without it every stream
    shares `handler`. `sleep` is the clock of `drain`. Health is NOT_SERVING until `set_serving(True)`.

    `session`, `decisions`, `openings`, `options`, `began`, `over` and `without_verdict` are for the streams of a
    transport.
    """

    def __init__(
        self,
        handler: Handler,
        address: str,
        options: ServerOptions | None = None,
        *,
        session: Callable[[], AbstractContextManager[Handler]] | None = None,
        on_stream: Callable[[int], None] | None = None,
        on_error: Callable[[Status], None] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.session = session or (lambda: nullcontext(handler))
        self._address = address
        self.options = options or ServerOptions()
        self.decisions = Decisions(self.options.deadline_s)
        self.openings = Openings()
        self._on_stream = on_stream
        self._on_error = on_error
        self._sleep = sleep
        self._health = Health(("", SERVICE))
        self._draining = False
        self._streams = 0
        self.port = 0
        """The port, once started; 0 on a Unix socket."""

    @property
    def streams(self) -> int:
        """Streams in flight."""
        return self._streams

    def set_serving(self, serving: bool) -> None:
        """Say over gRPC health whether requests may come. Calls are answered either way."""
        self._health.set_serving(serving)

    def set_deadline(self, deadline_s: float) -> None:
        """Change the longest time of one decision, for those that begin from now on."""
        self.decisions.deadline_s = deadline_s

    @abstractmethod
    async def start(self) -> None:
        """Listen. Raises ListenError, with the address, when that fails."""

    @abstractmethod
    async def drain(self, grace_s: float) -> None:
        """Stop without failing a request: say NOT_SERVING, wait `settle_s`, take no more, let streams finish.

        Streams that still run after `grace_s` seconds are cancelled, which Envoy answers with an error. A second
        call returns at once.
        """

    @abstractmethod
    async def stop(self) -> None:
        """Stop now: streams in flight are cancelled."""

    @abstractmethod
    async def wait(self) -> None:
        """Return when the server has stopped."""

    def began(self) -> None:
        """A stream begins."""
        self._count(1)

    def over(self, machine: StreamMachine) -> None:
        """A stream has ended, however."""
        self._count(-1)
        machine.over()
        if machine.ignored:
            log.debug("ignored repeated messages", extra={"count": machine.ignored})

    def without_verdict(self, command: Finish) -> None:
        """Tell of a stream that ends with an error."""
        # Envoy leaves early whenever it answers by itself, or its client left: nothing to warn of.
        level = logging.DEBUG if command.status is Status.ABORTED else logging.WARNING
        log.log(level, "stream without a verdict: %s", command.detail)
        if self._on_error is not None:
            self._on_error(command.status)

    def _count(self, delta: int) -> None:
        self._streams += delta
        if self._on_stream is not None:
            self._on_stream(delta)


class Decisions:
    """Runs what handlers decide, and cancels what takes longer than `deadline_s`."""

    def __init__(self, deadline_s: float) -> None:
        self.deadline_s = deadline_s
        """Longest time of a decision that begins from now on."""
        self._due: dict[asyncio.Task[object], float] = {}
        self._enforcing: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Enforce the deadline from now on, on the running loop."""
        self._enforcing = asyncio.get_running_loop().create_task(self._enforce(), name="decision deadlines")

    def stop(self) -> None:
        """Enforce it no longer."""
        if self._enforcing is not None:
            self._enforcing.cancel()

    def begin(
        self, handler: Handler, machine: StreamMachine, command: Decide
    ) -> tuple[Iterable[Command], Coroutine[Any, Any, Reply | Forward] | None]:
        """What the machine says to the handler's verdict; or nothing yet, and what `settle` has to wait for."""
        try:
            verdict = handler.on_request(command.head, command.body)
        except Exception as error:
            report(error)
            return machine.failed(Fault.INTERNAL), None
        if isinstance(verdict, (Reply, Forward)):
            return machine.decided(verdict), None
        return (), verdict

    async def settle(self, machine: StreamMachine, verdict: Coroutine[Any, Any, Reply | Forward]) -> Iterable[Command]:
        """What the machine says to a verdict that takes time. The task that runs this is cancelled at the deadline."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - only tasks await
        self._due[task] = asyncio.get_running_loop().time() + self.deadline_s
        try:
            decided = await verdict
        except asyncio.CancelledError as error:
            if task not in self._due and task.uncancel() == 0:
                log.warning("a decision ran out of time")
                return machine.failed(Fault.DEADLINE)
            if task.cancelling():
                raise
            # Something that the handler waited for was cancelled, not this stream. Let through, it would leave the
            # stream open without an answer.
            report(error)
            return machine.failed(Fault.INTERNAL)
        except Exception as error:
            report(error)
            return machine.failed(Fault.INTERNAL)
        finally:
            self._due.pop(task, None)
        return machine.decided(decided)

    async def _enforce(self) -> None:
        """Cancel decisions that are over their time. One look at all of them now and then costs less than a timer each.

        A task that is cancelled here leaves `_due` first, by which `settle` tells this from a client that has gone.
        """
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(self.deadline_s / 4, DEADLINE_CHECK_S))
            now = loop.time()
            for task in [task for task, due in self._due.items() if due <= now]:
                del self._due[task]
                task.cancel()


def report(error: BaseException) -> None:
    """Log an exception by its class and place alone: its text may hold parts of a prompt."""
    log.error("request failed: %s at %s", type(error).__name__, place(error))
