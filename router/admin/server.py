"""The metrics and management servers, on a thread and event loop of their own.

They share nothing with the serving loop but `Status` and the metrics registry, so a probe is answered at once however
busy the requests keep the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading

from aiohttp import web

from router.admin.api import Desk, add_previews, errors_as_json, json_reply
from router.admin.replays import add_replays
from router.admin.status import Status
from router.config.plan import Service
from router.observe import Metrics

_STOP_S = 1.0


def management_app(status: Status, desk: Desk | None = None, *, max_body_bytes: int = 1 << 20) -> web.Application:
    """`/livez` and `/readyz` (`/health` and `/ready` are their aliases), and with a `desk` the API under `/api/v1`."""

    async def live(_: web.Request) -> web.Response:
        return json_reply({"live": status.live}, 200 if status.live else 503)

    async def ready(_: web.Request) -> web.Response:
        return json_reply(status.detail(), 200 if status.ready else 503)

    app = web.Application(middlewares=[errors_as_json], client_max_size=max_body_bytes)
    app.router.add_get("/livez", live)
    app.router.add_get("/health", live)
    app.router.add_get("/readyz", ready)
    app.router.add_get("/ready", ready)
    if desk is not None:
        add_previews(app, desk)
        add_replays(app, desk)
    return app


def metrics_app(metrics: Metrics) -> web.Application:
    """`/metrics` in the Prometheus text format."""

    async def render(_: web.Request) -> web.Response:
        return web.Response(body=metrics.render(), headers={"content-type": metrics.content_type})

    app = web.Application()
    app.router.add_get("/metrics", render)
    return app


class AdminServer:
    """Runs applications on their addresses until `stop`. `start` raises OSError when an address cannot be had."""

    def __init__(self, apps: list[tuple[Service, web.Application]]) -> None:
        self._apps = apps
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="admin", daemon=True)
        self._runners: list[web.AppRunner] = []
        self.ports: list[int] = []

    def start(self) -> None:
        """Bind every address and serve; `ports` then holds what was bound (for port 0)."""
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        except BaseException:
            self.stop()
            raise

    async def _start(self) -> None:
        for service, app in self._apps:
            runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_STOP_S)
            await runner.setup()
            self._runners.append(runner)
            site = web.TCPSite(runner, service.address, service.port)
            await site.start()
            self.ports.append(runner.addresses[0][1])

    async def _stop(self) -> None:
        for runner in self._runners:
            await runner.cleanup()

    def stop(self) -> None:
        """Close the sockets and end the thread. Calling it again is harmless."""
        if self._loop.is_closed():
            return
        if self._thread.is_alive():
            with contextlib.suppress(TimeoutError):
                asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(timeout=_STOP_S + 2)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()
