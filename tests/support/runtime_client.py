"""A runtime's application over HTTP, in the process of the test."""

from __future__ import annotations

import json
from typing import Any

from aiohttp.test_utils import TestClient, TestServer

from router.runtime.server import RUNNER_OPTIONS, Server

Client = TestClient[Any, Any]
PATH = "/v1/systemone"
NOUL = {"type": "noul", "instructions": "math"}
UNKNOWN = {"type": "noul", "preset": "unheard_of"}
"""A question that no model answers."""


async def started(server: Server) -> TestServer:
    """The application as it is served, but that a client that leaves cancels nothing."""
    running = TestServer(server.app())
    options = {key: value for key, value in RUNNER_OPTIONS.items() if key != "handler_cancellation"}
    await running.start_server(**options)
    return running


async def post(client: Client, body: Any, **kwargs: Any) -> tuple[int, dict[str, Any]]:
    """Status and body of an answer to a body, which may be JSON or bytes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with client.post(PATH, data=data, **kwargs) as response:
        assert response.content_type == "application/json"
        return response.status, await response.json()
