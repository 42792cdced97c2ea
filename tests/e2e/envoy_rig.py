"""A real Envoy on a rendered plan, between a test's client, a scripted router and backends that remember."""

from __future__ import annotations

import asyncio
import io
import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import grpc
import grpc.aio
from aiohttp import ClientSession, web
from yarl import URL

from router.config.plan import ApiFormat, Auth, Backend, Listener, Plan, ProviderModel, Service, Services
from router.gateway.envoy import Target, render
from router.gateway.envoy.admin import Admin
from router.gateway.envoy.files import write_xds
from router.gateway.envoy.run import envoy_command
from router.gateway.options import MachineOptions
from router.gateway.transport import SERVICE, Server, ServerOptions
from router.gateway.transports import Transport
from router.verdict import Fault, Forward, HeadVerdict
from router.wire.http import Head, Reply


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def provider(
    name: str, *backends: Backend, api_format: ApiFormat = ApiFormat.CHAT, provider_model_id: str = "id"
) -> ProviderModel:
    return ProviderModel(name, api_format, provider_model_id, backends)


def replica(
    port: int, *, path: str = "/v1", host: str = "127.0.0.1", weight: int = 1, auth: Auth | None = None
) -> Backend:
    return Backend("http", host, port, path, weight, auth)


def make_plan(*models: ProviderModel, port: int = 18899, extproc: int = 15051, **changes: object) -> Plan:
    plan = Plan(
        revision="one",
        listeners=(Listener("main", "127.0.0.1", port, 30.0, False),),
        models={model.name: model for model in models},
        recipes={},
        entrypoints={},
        default_entrypoint=None,
        default_model=None,
        deployments={},
        services=Services(Service("127.0.0.1", extproc), Service("127.0.0.1", 9190), Service("127.0.0.1", 8080)),
        signal_timeout_ms=0,
        max_body_bytes=4 * 1024 * 1024,
        streamed_body=False,
        clear_route_cache=True,
    )
    return replace(plan, **changes)  # type: ignore[arg-type]


@dataclass
class Seen:
    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]


@dataclass
class Remembering:
    """A backend. It forges router headers, and streams for a while when the request says so."""

    name: str
    seen: list[Seen] = field(default_factory=list)
    port: int = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        headers = [(key.lower(), value) for key, value in request.headers.items()]
        self.seen.append(Seen(request.method, request.path_qs, headers, body))
        forged = {"x-vsr-evil": "1", "x-vsr-selected-model": "forged", "x_vsr_twin": "1", "server": self.name}
        if b'"slow"' not in body:
            return web.json_response({"backend": self.name}, headers=forged)
        answer = web.StreamResponse(headers=forged | {"content-type": "text/event-stream"})
        await answer.prepare(request)
        for index in range(20):
            await answer.write(b"data: %d\n\n" % index)
            await asyncio.sleep(0.1)
        return answer


@asynccontextmanager
async def remembering(name: str) -> AsyncIterator[Remembering]:
    backend = Remembering(name)
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_route("*", "/{tail:.*}", backend.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    backend.port = runner.addresses[0][1]
    try:
        yield backend
    finally:
        await runner.cleanup()


class ByModel:
    """Routes to the model that the body names; anything outside /v1/ passes. Header `x-plan` imitates a plan's mark."""

    def __init__(self) -> None:
        self.heads: list[Head] = []
        self.gate: asyncio.Event | None = None
        self.extra: dict[str, str] = {}

    def on_head(self, head: Head) -> Reply | HeadVerdict:
        self.heads.append(head)
        if head.path == "/v1/models":
            return Reply(200, {"content-type": "application/json", "x-vsr-response-path": "fast_response"}, b"[]")
        return HeadVerdict.NEED_BODY if head.path.startswith("/v1/") else HeadVerdict.PASS_THROUGH

    async def on_request(self, head: Head, body: bytes) -> Reply | Forward:
        if self.gate is not None:
            await self.gate.wait()
        told = json.loads(body)
        if told["model"] == "refuse":
            return Reply(413, {"content-type": "application/json", "x-vsr-response-path": "error"}, b'{"mine":true}')
        metadata = {"recipe": "default", "decision": "code", "model": told["model"], "confidence": "0.9000"}
        return Forward(told["model"], set_headers={"x-selected-model": told["model"]} | self.extra, metadata=metadata)

    def fault(self, head: Head, fault: Fault) -> Reply:
        return Reply(503, {"content-type": "application/json"}, json.dumps({"fault": fault.value}).encode())


@asynccontextmanager
async def router(
    handler: ByModel, port: int, max_body_bytes: int = 4 * 1024 * 1024, transport: Transport = Transport.FAST
) -> AsyncIterator[Server]:
    machine = MachineOptions(allow_mode_override=True, max_body_bytes=max_body_bytes)
    server = transport.server()(handler, f"127.0.0.1:{port}", ServerOptions(machine=machine, settle_s=0.0))
    await server.start()
    server.set_serving(True)
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def raw_router(port: int, behave: Callable[[grpc.aio.ServicerContext], Awaitable[None]]) -> AsyncIterator[None]:  # type: ignore[type-arg]
    """A processor that reads nothing, answers nothing and does what it likes with the stream."""

    async def process(_: AsyncIterator[bytes], context: grpc.aio.ServicerContext) -> AsyncIterator[bytes]:  # type: ignore[type-arg]
        await behave(context)
        for nothing in list[bytes]():
            yield nothing

    server = grpc.aio.server()
    method: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(process)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"Process": method}),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    try:
        yield
    finally:
        await server.stop(None)


@dataclass
class Rig:
    """A running Envoy and what a test needs to talk to it."""

    url: str
    admin: Admin
    client: ClientSession
    process: asyncio.subprocess.Process
    folder: Path
    admin_target: Target

    async def chat(
        self,
        model: str,
        headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        path: str = "/v1/chat/completions",
    ) -> tuple[int, dict[str, str], bytes]:
        body = json.dumps({"model": model}).encode()
        return await self.send("POST", path, headers, body)

    async def send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
        body: bytes | AsyncIterator[bytes] = b"",
    ) -> tuple[int, dict[str, str], bytes]:
        url = URL(self.url + path, encoded=True)
        data = io.BytesIO(body) if isinstance(body, bytes) else body
        async with self.client.request(method, url, headers=dict(headers), data=data if body else None) as answer:
            content = await answer.read()
            return answer.status, {key.lower(): value for key, value in answer.headers.items()}, content


@asynccontextmanager
async def envoy(
    plan: Plan, folder: Path, *, dynamic: bool = False, environ: Mapping[str, str] | None = None, wait: bool = True
) -> AsyncIterator[Rig]:
    admin_target = Target("127.0.0.1", free_port())
    xds = folder / "xds" if dynamic else None
    rendered = render(plan, admin=admin_target, xds_dir=xds, access_log=True)
    if xds is not None:
        write_xds(xds, rendered)
    bootstrap = folder / "bootstrap.yaml"
    bootstrap.write_text(rendered.yaml())
    log = (folder / "envoy.log").open("wb")
    process = await asyncio.create_subprocess_exec(
        *envoy_command(bootstrap, concurrency=1, drain_s=3),
        stdout=log,
        stderr=log,
        env={**os.environ, **(environ or {})},
    )
    port = plan.listeners[0].port
    async with Admin(admin_target) as admin, ClientSession() as client:
        rig = Rig(f"http://127.0.0.1:{port}", admin, client, process, folder, admin_target)
        try:
            for _ in range(400):
                assert process.returncode is None, (folder / "envoy.log").read_text()
                if await admin.ready() and (not wait or await _router_healthy(admin)):
                    break
                await asyncio.sleep(0.05)
            else:
                raise AssertionError((folder / "envoy.log").read_text())
            yield rig
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            log.close()


async def _router_healthy(admin: Admin) -> bool:
    lines = (await admin._call("GET", "/clusters")).splitlines()
    health = [line for line in lines if line.startswith("pointsman/ext_proc::") and "health_flags" in line]
    return bool(health) and all(line.endswith("health_flags::healthy") for line in health)
