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

    def _status(self) -> int:
        return int(HealthCheckResponse.SERVING if self._serving else HealthCheckResponse.NOT_SERVING)

    async def _check(
        self, request: HealthCheckRequest, context: grpc.aio.ServicerContext[HealthCheckRequest, HealthCheckResponse]
    ) -> HealthCheckResponse:
        if request.service not in self._services:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        return HealthCheckResponse(status=self._status())

    async def _watch(
        self, request: HealthCheckRequest, context: grpc.aio.ServicerContext[HealthCheckRequest, HealthCheckResponse]
    ) -> AsyncIterator[HealthCheckResponse]:
        known = request.service in self._services
        while True:
            changed, closed = self._changed, self._closed
            yield HealthCheckResponse(status=self._status() if known else HealthCheckResponse.SERVICE_UNKNOWN)
            if closed:
                return
            await changed.wait()
