"""The ext_proc server on grpc.aio: the reference transport around the phase machine.

One task a stream, which reads a message, carries out what the machine says, and reads the next. While the handler
decides nothing is read: Envoy sends nothing then, and a client that leaves cancels the task, and with it the decision,
at once.

Messages travel through gRPC as plain bytes. So constant answers are never serialised again, undecodable messages reach
the machine's rules instead of gRPC's, and large bodies skip protobuf on the way out. Decoding stays on the event loop
whatever the size: it is one copy of the body (8 MiB: 0.6 ms), made while the interpreter's lock is held, so a thread
would add a hand-over and free nothing. What is slow in a large body is reading its JSON: that is the handler's to move.

All streams of a process live on one event loop: grpc.aio polls badly from several.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import grpc
import grpc.aio

from router.gateway.commands import Command, Decide, Finish, Send, Status
from router.gateway.health import Health
from router.gateway.machine import StreamMachine
from router.gateway.options import MachineOptions
from router.verdict import Fault, Handler

SERVICE = "envoy.service.ext_proc.v3.ExternalProcessor"
MESSAGE_HEADROOM = 1024 * 1024
"""Bytes of a gRPC message beyond the largest body: headers, attributes, a body that grew by an edit."""

DEADLINE_CHECK_S = 0.5
"""How late a decision's deadline may be noticed."""

_log = logging.getLogger("pointsman.gateway")
_CODES: dict[Status, grpc.StatusCode] = {status: grpc.StatusCode[status.name] for status in Status}


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


class ExtProcServer:
    """Serves `handler` on `address`: "host:port" (port 0 picks one) or "unix:/path".

    `on_stream` is called with +1 and -1 as streams begin and end, `on_error` with the status of each stream that ends
    without a verdict. `session` gives the handler of one stream for as long as that lasts; without it every stream
    shares `handler`. `sleep` is the clock of `drain`. Health is NOT_SERVING until `set_serving(True)`.
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
        self._session = session or (lambda: nullcontext(handler))
        self._address = address
        self._options = options or ServerOptions()
        self._deadline_s = self._options.deadline_s
        self._on_stream = on_stream
        self._on_error = on_error
        self._sleep = sleep
        self._health = Health(("", SERVICE))
        self._server: grpc.aio.Server | None = None
        self._draining = False
        self._streams = 0
        self._due: dict[asyncio.Task[object], float] = {}
        self._enforcing: asyncio.Task[None] | None = None
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
        self._deadline_s = deadline_s

    async def start(self) -> None:
        """Listen. Raises ListenError, with the address, when that fails."""
        server = grpc.aio.server(options=self._channel_options())
        process: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(self._process)
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, {"Process": process}), self._health.handler())
        )
        try:
            port = server.add_insecure_port(self._address)
        except RuntimeError:
            raise ListenError(f"cannot listen on {self._address}: in use, malformed or not permitted") from None
        await server.start()
        self._server = server
        self._enforcing = asyncio.get_running_loop().create_task(self._enforce_deadline(), name="decision deadlines")
        self.port = 0 if self._address.startswith("unix:") else port

    async def drain(self, grace_s: float) -> None:
        """Stop without failing a request: say NOT_SERVING, wait `settle_s`, take no more, let streams finish.

        Streams that still run after `grace_s` seconds are cancelled, which Envoy answers with an error. A second
        call returns at once.
        """
        if self._server is None or self._draining:
            return
        self._draining = True
        self._health.close()
        await self._sleep(self._options.settle_s)
        await self._server.stop(grace_s)
        self._release()

    async def stop(self) -> None:
        """Stop now: streams in flight are cancelled."""
        self._health.close()
        if self._server is not None:
            await self._server.stop(None)
        self._release()

    def _release(self) -> None:
        if self._enforcing is not None:
            self._enforcing.cancel()

    async def wait(self) -> None:
        """Return when the server has stopped."""
        if self._server is not None:
            await self._server.wait_for_termination()

    def _channel_options(self) -> list[tuple[str, int]]:
        limit = self._options.machine.max_body_bytes + MESSAGE_HEADROOM
        options = [
            ("grpc.max_receive_message_length", limit),
            ("grpc.max_send_message_length", limit),
            # Two processes on one port would hide a mistake, and spread nothing: Envoy holds one connection.
            ("grpc.so_reuseport", 0),
            # Envoy's keepalive pings are welcome however many there are.
            ("grpc.http2.max_ping_strikes", 0),
        ]
        if self._options.max_connection_age_s is not None:
            options.append(("grpc.max_connection_age_ms", int(self._options.max_connection_age_s * 1000)))
        return options

    async def _process(
        self, messages: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, bytes]
    ) -> AsyncIterator[bytes]:
        with self._session() as handler:
            machine = StreamMachine(handler, self._options.machine, _report)
            self._count(1)
            try:
                async for message in messages:
                    commands: Iterable[Command] = machine.feed(message)
                    while commands:
                        decide: Decide | None = None
                        for command in commands:
                            if isinstance(command, Send):
                                yield command.data
                            elif isinstance(command, Decide):
                                decide = command
                            else:
                                await self._finish(command, context)
                                return
                        commands = () if decide is None else await self._decide(handler, machine, decide)
                for command in machine.ended():
                    if isinstance(command, Finish):
                        await self._finish(command, context)
            except grpc.aio.AbortError:
                raise
            except Exception as error:  # gRPC would log it with its text, and send the text to Envoy
                _report(error)
                await context.abort(grpc.StatusCode.INTERNAL, "internal error")
            finally:
                self._count(-1)
                if machine.ignored:
                    _log.debug("ignored repeated messages", extra={"count": machine.ignored})

    async def _decide(self, handler: Handler, machine: StreamMachine, command: Decide) -> Iterable[Command]:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - every stream is a task
        self._due[task] = asyncio.get_running_loop().time() + self._deadline_s
        try:
            verdict = await handler.on_request(command.head, command.body)
        except asyncio.CancelledError as error:
            if task not in self._due and task.uncancel() == 0:
                _log.warning("a decision ran out of time")
                return machine.failed(Fault.DEADLINE)
            if task.cancelling():
                raise
            # Something that the handler waited for was cancelled, not this stream. Let through, it would leave the
            # stream open without an answer: gRPC takes it for a cancellation of its own.
            _report(error)
            return machine.failed(Fault.INTERNAL)
        except Exception as error:
            _report(error)
            return machine.failed(Fault.INTERNAL)
        finally:
            self._due.pop(task, None)
        return machine.decided(verdict)

    async def _enforce_deadline(self) -> None:
        """Cancel decisions that are over their time. One look at all of them now and then costs less than a timer each.

        A task that is cancelled here leaves `_due` first, by which `_decide` tells this from a client that has gone.
        """
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(self._deadline_s / 4, DEADLINE_CHECK_S))
            now = loop.time()
            for task in [task for task, due in self._due.items() if due <= now]:
                del self._due[task]
                task.cancel()

    async def _finish(self, command: Finish, context: grpc.aio.ServicerContext[bytes, bytes]) -> None:
        if command.status is Status.OK:
            return
        # Envoy leaves early whenever it answers by itself, or its client left: nothing to warn of.
        level = logging.DEBUG if command.status is Status.ABORTED else logging.WARNING
        _log.log(level, "stream without a verdict: %s", command.detail)
        if self._on_error is not None:
            self._on_error(command.status)
        try:
            await context.abort(_CODES[command.status], command.detail)
        except grpc.aio.AbortError:
            raise
        except Exception:  # gRPC's unnamed error for a peer that is gone, which is what a cancellation says
            raise asyncio.CancelledError from None

    def _count(self, delta: int) -> None:
        self._streams += delta
        if self._on_stream is not None:
            self._on_stream(delta)


def _report(error: BaseException) -> None:
    """Log an exception by its class alone: its text may hold parts of a prompt."""
    _log.error("request failed: %s", type(error).__name__)
