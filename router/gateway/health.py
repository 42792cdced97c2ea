"""The gRPC health service (grpc.health.v1), by which Envoy learns whether to send requests here."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc.aio
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

SERVICE = "grpc.health.v1.Health"


class Health:
    """Answers Check and Watch for a fixed set of service names; not serving until told otherwise.

    Unlike the health package's own servicer it changes state without awaiting, and its watchers end when it is closed,
    so that they never hold up a drain.
    """

    def __init__(self, services: tuple[str, ...]) -> None:
        self._services = frozenset(services)
        self._serving = False
        self._closed = False
        self._changed = asyncio.Event()

    @property
    def serving(self) -> bool:
        """What is answered at present."""
        return self._serving

    def set_serving(self, serving: bool) -> None:
        """Change the answer. Without effect once closed: a drain is never undone."""
        if self._closed or serving == self._serving:
            return
        self._serving = serving
        self._wake()

    def close(self) -> None:
        """Not serving, for good."""
        self._serving = False
        self._closed = True
        self._wake()

    def handler(self) -> grpc.GenericRpcHandler:
        """The service, ready to be added to a server."""
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Check": grpc.unary_unary_rpc_method_handler(
                    self._check, HealthCheckRequest.FromString, HealthCheckResponse.SerializeToString
                ),
                "Watch": grpc.unary_stream_rpc_method_handler(
                    self._watch, HealthCheckRequest.FromString, HealthCheckResponse.SerializeToString
                ),
            },
        )

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def status(self, service: str) -> int | None:
        """What is answered about `service` now; None when there is no such service."""
        if service not in self._services:
            return None
        return int(HealthCheckResponse.SERVING if self._serving else HealthCheckResponse.NOT_SERVING)

    async def watch(self, service: str) -> AsyncIterator[int]:
        """The status of `service` now and whenever it may have changed, until this is closed."""
        while True:
            changed, closed = self._changed, self._closed
            status = self.status(service)
            yield int(HealthCheckResponse.SERVICE_UNKNOWN) if status is None else status
            if closed:
                return
            await changed.wait()

    async def _check(
        self, request: HealthCheckRequest, context: grpc.aio.ServicerContext[HealthCheckRequest, HealthCheckResponse]
    ) -> HealthCheckResponse:
        status = self.status(request.service)
        if status is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        return HealthCheckResponse(status=status)

    async def _watch(
        self, request: HealthCheckRequest, context: grpc.aio.ServicerContext[HealthCheckRequest, HealthCheckResponse]
    ) -> AsyncIterator[HealthCheckResponse]:
        async for status in self.watch(request.service):
            yield HealthCheckResponse(status=status)
