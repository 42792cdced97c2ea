"""Large bodies: few are read at a time, none of a request that would be refused, and small ones pass by."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from router.runtime import receive
from router.runtime.bounds import Bounds
from router.runtime.json_text import parse_json
from router.runtime.model import Model
from router.runtime.server import Server
from tests.support.runtime_client import NOUL, Client, post, serving

SMALL = {"state": "law", "questions": {"q": NOUL}}
LARGE = json.dumps(SMALL).encode().ljust(100_000)


class Held:
    """`parse_json`, which large bodies leave only when they are let; how many were in it at one time."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.inside = self.most = 0
        self._lock = threading.Lock()
        self._parse = parse_json

    def __call__(self, data: bytes) -> Any:
        if len(data) < len(LARGE):
            return self._parse(data)
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        assert self.go_on.wait(10)
        with self._lock:
            self.inside -= 1
        return self._parse(data)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    held = Held()
    monkeypatch.setattr(receive, "parse_json", held)
    return held


@pytest.fixture
async def client(tiny_model: Model, held: Held) -> AsyncIterator[Client]:
    server = Server()
    server.model = tiny_model
    async with serving(server) as client:
        yield client
        held.go_on.set()


async def test_two_large_bodies_are_read_at_a_time_and_small_ones_pass_by(client: Client, held: Held) -> None:
    large = [asyncio.create_task(post(client, LARGE)) for _ in range(6)]
    await asyncio.sleep(0.2)
    assert (await post(client, SMALL))[0] == 200
    assert held.inside == 2
    held.go_on.set()
    assert [status for status, _ in await asyncio.gather(*large)] == [200] * 6
    assert held.most == 2


async def test_those_that_wait_to_be_read_are_in_the_queue(client: Client, held: Held, tiny_model: Model) -> None:
    tiny_model._bounds = Bounds(requests=3)
    large = [asyncio.create_task(post(client, LARGE)) for _ in range(3)]
    await asyncio.sleep(0.2)
    for refused in (LARGE, SMALL):
        assert (await post(client, refused))[0] == 429
    assert held.inside == 2
    held.go_on.set()
    assert [status for status, _ in await asyncio.gather(*large)] == [200] * 3
    assert (await post(client, LARGE))[0] == 200


@pytest.mark.parametrize("data", [LARGE, b"{", json.dumps(SMALL).encode()])
async def test_the_body_of_a_request_without_room_is_not_read(
    client: Client, held: Held, tiny_model: Model, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receive, "parse_json", None)
    tiny_model._bounds = Bounds(requests=0)
    status, got = await post(client, data)
    assert (status, got["code"]) == (429, "overloaded")
