"""A runtime's endpoints over HTTP, in the process of the test."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import ClientSession

from router.runtime.http.listener import Listener
from router.runtime.serve import Address, bind
from router.runtime.server import Server

Client = ClientSession
PATH = "/v1/systemone"
NOUL = {"type": "noul", "instructions": "math"}
UNKNOWN = {"type": "noul", "preset": "unheard_of"}
"""A question that no model answers."""


@asynccontextmanager
async def listening(server: Server) -> AsyncIterator[str]:
    """The server as it is served, and its URL."""
    listener = server.listener()
    url = await listen(listener)
    try:
        yield url
    finally:
        await listener.stop(5)


async def listen(listener: Listener) -> str:
    """Start a listener on a free port; its URL."""
    sock: socket.socket = bind(Address(None, "127.0.0.1", 0))
    await listener.start(sock)
    return f"http://127.0.0.1:{sock.getsockname()[1]}"


@asynccontextmanager
async def serving(server: Server) -> AsyncIterator[Client]:
    """A client of a server; paths are relative to it."""
    async with listening(server) as url, ClientSession(url) as client:
        yield client


async def post(client: Client, body: Any, **kwargs: Any) -> tuple[int, dict[str, Any]]:
    """Status and body of an answer to a body, which may be JSON or bytes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with client.post(PATH, data=data, **kwargs) as response:
        assert response.content_type == "application/json"
        return response.status, await response.json()
