"""The transports by name. Only what is chosen is loaded."""

from __future__ import annotations

from enum import StrEnum

from router.gateway.transport import Server


class Transport(StrEnum):
    """What carries ext_proc: the router's own HTTP/2 server, or grpcio's as reference and fallback."""

    FAST = "fast"
    GRPCIO = "grpcio"

    def server(self) -> type[Server]:
        """The class of its servers."""
        if self is Transport.FAST:
            from router.gateway.h2.server import FastServer  # noqa: PLC0415

            return FastServer
        from router.gateway.server import ExtProcServer  # noqa: PLC0415

        return ExtProcServer
