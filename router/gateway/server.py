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
from collections.abc import AsyncIterator, Iterable

import grpc
import grpc.aio

from router.gateway.commands import Command, Decide, Finish, Send, Status
from router.gateway.machine import StreamMachine
from router.gateway.transport import MESSAGE_HEADROOM, SERVICE, ListenError, Server, report
from router.verdict import Handler

_CODES: dict[Status, grpc.StatusCode] = {status: grpc.StatusCode[status.name] for status in Status}


class ExtProcServer(Server):
    """See `Server`."""

    _server: grpc.aio.Server | None = None

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
        self.decisions.start()
        self.port = 0 if self._address.startswith("unix:") else port

    async def drain(self, grace_s: float) -> None:
        """Stop without failing a request, as `Server.drain` says."""
        if self._server is None or self._draining:
            return
        self._draining = True
        self._health.close()
        await self._sleep(self.options.settle_s)
        await self._server.stop(grace_s)
        self.decisions.stop()

    async def stop(self) -> None:
        """Stop now: streams in flight are cancelled."""
        self._health.close()
        if self._server is not None:
            await self._server.stop(None)
        self.decisions.stop()

    async def wait(self) -> None:
        """Return when the server has stopped."""
        if self._server is not None:
            await self._server.wait_for_termination()

    def _channel_options(self) -> list[tuple[str, int]]:
        limit = self.options.machine.max_body_bytes + MESSAGE_HEADROOM
        options = [
            ("grpc.max_receive_message_length", limit),
            ("grpc.max_send_message_length", limit),
            # Two processes on one port would hide a mistake, and spread nothing: Envoy holds one connection.
            ("grpc.so_reuseport", 0),
            # Envoy's keepalive pings are welcome however many there are.
            ("grpc.http2.max_ping_strikes", 0),
        ]
        if self.options.max_connection_age_s is not None:
            options.append(("grpc.max_connection_age_ms", int(self.options.max_connection_age_s * 1000)))
        return options

    async def _process(
        self, messages: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, bytes]
    ) -> AsyncIterator[bytes]:
        with self.session() as handler:
            machine = StreamMachine(handler, self.options.machine, report, self.openings)
            self.began()
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
                report(error)
                await context.abort(grpc.StatusCode.INTERNAL, "internal error")
            finally:
                self.over(machine)

    async def _decide(self, handler: Handler, machine: StreamMachine, command: Decide) -> Iterable[Command]:
        commands, verdict = self.decisions.begin(handler, machine, command)
        return commands if verdict is None else await self.decisions.settle(machine, verdict)

    async def _finish(self, command: Finish, context: grpc.aio.ServicerContext[bytes, bytes]) -> None:
        if command.status is Status.OK:
            return
        self.without_verdict(command)
        try:
            await context.abort(_CODES[command.status], command.detail)
        except grpc.aio.AbortError:
            raise
        except Exception:  # gRPC's unnamed error for a peer that is gone, which is what a cancellation says
            raise asyncio.CancelledError from None
