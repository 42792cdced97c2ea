"""Connections as a server sees them: kept, replaced, and never given to a call that they could harm."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from router.asking.http import pool as pool_module
from router.asking.http.connection import WHOLE_BYTES, Broken
from router.asking.http.endpoint import read_endpoint
from router.asking.http.pool import Pool, Unreachable

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
REQUEST = b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def says(data: bytes, *, close: bool = False) -> Script:
    """Answer with these bytes."""

    async def act(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        if close:
            writer.close()

    return act


class Server:
    """Does for each request, once its head has come, what is next in the script; counts connections."""

    def __init__(self, path: str) -> None:
        self.endpoint = read_endpoint(f"unix://{path}")
        self.path = path
        self.script: deque[Script] = deque()
        self.connections: list[asyncio.StreamWriter] = []
        self.ended = asyncio.Event()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(writer)
        try:
            while not writer.is_closing():
                await reader.readuntil(b"\r\n\r\n")
                act = self.script.popleft() if self.script else says(OK)
                await act(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            self.ended.set()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    server = Server(str(tmp_path / "s"))
    listening = await asyncio.start_unix_server(server.talk, server.path)
    async with asyncio.timeout(20):
        yield server
    listening.close()
    for writer in server.connections:
        writer.close()
    await asyncio.sleep(0.01)


@pytest.fixture
async def pool(server: Server) -> AsyncIterator[Pool]:
    pool = Pool(server.endpoint)
    yield pool
    pool.close()


async def ask(pool: Pool, request: bytes = REQUEST, limit: int = 100, timeout_s: float = 20) -> bytes | None:
    return (await pool.exchange(request, limit, limit, timeout_s)).body


async def test_one_connection_serves_calls_in_turn(server: Server, pool: Pool) -> None:
    assert [await ask(pool) for _ in range(3)] == [b"ok"] * 3
    assert len(server.connections) == 1


async def test_calls_at_once_have_a_connection_each_and_the_last_used_is_next(server: Server, pool: Pool) -> None:
    assert await asyncio.gather(*(ask(pool) for _ in range(5))) == [b"ok"] * 5
    assert len(server.connections) == 5
    await ask(pool)
    assert len(server.connections) == 5


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"more",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ],
)
async def test_a_connection_that_cannot_carry_more_is_not_kept(server: Server, pool: Pool, answer: bytes) -> None:
    server.script.append(says(answer))
    assert [await ask(pool), await ask(pool)] == [b"ok", b"ok"]
    assert len(server.connections) == 2


async def test_a_body_may_end_with_its_connection(server: Server, pool: Pool) -> None:
    server.script.append(says(b"HTTP/1.1 200 OK\r\n\r\nall of it", close=True))
    assert await ask(pool) == b"all of it"


async def test_bytes_that_nobody_asked_for_end_a_kept_connection(server: Server, pool: Pool) -> None:
    await ask(pool)
    server.connections[0].write(OK)
    await server.ended.wait()
    server.script.append(says(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nnew"))
    assert await ask(pool) == b"new"


async def test_what_was_not_answered_at_all_is_asked_once_more_over_a_new_connection(
    server: Server, pool: Pool
) -> None:
    await asyncio.gather(*(ask(pool) for _ in range(3)))
    server.script.append(says(b"", close=True))
    assert await ask(pool) == b"ok"
    assert len(server.connections) == 4, "another kept one would likely be as dead"
    server.script.extend([says(b"", close=True)] * 2)
    with pytest.raises(Broken) as caught:
        await ask(pool)
    assert caught.value.unanswered
    assert not server.script, "asked twice, and no third time"


@pytest.mark.parametrize("part", [b"H", OK[:-1], b"nonsense", b"HTTP/1.1 100 Continue\r\n\r\n"])
async def test_what_was_answered_in_part_is_not_asked_again(server: Server, pool: Pool, part: bytes) -> None:
    server.script.append(says(part, close=True))
    with pytest.raises(Broken) as caught:
        await ask(pool)
    assert not caught.value.unanswered
    assert len(server.connections) == 1


async def test_a_call_that_is_given_up_takes_its_connection_along(server: Server, pool: Pool) -> None:
    arrived, held = asyncio.Event(), asyncio.Event()

    async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await held.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate")

    server.script.append(late)
    call = asyncio.create_task(ask(pool))
    await arrived.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    held.set()
    assert await ask(pool) == b"ok"


async def test_an_answer_that_does_not_come_in_time_takes_its_connection_along(server: Server, pool: Pool) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def full(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await server.ended.wait()

    server.script.extend([silent, full])
    with pytest.raises(TimeoutError):
        await ask(pool, timeout_s=0.01)
    await server.ended.wait()
    server.ended.clear()
    with pytest.raises(TimeoutError):
        await ask(pool, REQUEST + b"x" * 20_000_000, timeout_s=0.01)
    server.ended.set()
    assert await ask(pool) == b"ok"
    assert len(server.connections) == 3


async def test_a_connection_that_is_not_made_in_time_is_given_up(server: Server) -> None:
    deaf = socket.socket()  # nobody accepts, so TLS is never begun
    deaf.bind(("127.0.0.1", 0))
    deaf.listen()
    with pytest.raises(TimeoutError):
        await ask(Pool(read_endpoint(f"https://127.0.0.1:{deaf.getsockname()[1]}")), timeout_s=0.01)
    deaf.close()


async def test_a_large_request_is_sent_whole(server: Server, pool: Pool) -> None:
    sizes: list[int] = []

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sizes.append(len(await reader.readexactly(10 * WHOLE_BYTES + 7)))
        writer.write(OK)

    server.script.append(count)
    assert await ask(pool, REQUEST + b"x" * (10 * WHOLE_BYTES + 7)) == b"ok"
    assert sizes == [10 * WHOLE_BYTES + 7]


async def test_an_answer_that_comes_before_all_is_sent_ends_the_sending(server: Server, pool: Pool) -> None:
    server.script.append(says(b"HTTP/1.1 413 Large\r\nContent-Length: 2\r\n\r\nno"))
    assert await ask(pool, REQUEST + b"x" * 20_000_000) == b"no"
    assert await ask(pool) == b"ok"
    assert len(server.connections) == 2


async def test_a_response_past_its_limit_is_cut_off(server: Server, pool: Pool) -> None:
    assert await ask(pool, limit=1) is None
    assert await ask(pool) == b"ok"
    assert len(server.connections) == 2


async def test_what_is_not_used_is_not_kept_for_long(
    server: Server, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "KEEP_S", 0.01)
    await ask(pool)
    await server.ended.wait()


async def test_resting_ends_only_what_is_idle(server: Server, pool: Pool) -> None:
    held, arrived = asyncio.Event(), asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await held.wait()
        writer.write(OK)

    await ask(pool)
    pool.rest()
    await server.ended.wait()
    server.script.append(wait)
    call = asyncio.create_task(ask(pool))
    await arrived.wait()
    pool.rest()
    held.set()
    assert await call == b"ok"


async def test_closing_fails_what_is_in_flight_and_asks_nothing_again(server: Server, pool: Pool) -> None:
    arrived = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.set()
        await reader.read()
        writer.close()

    server.script.append(wait)
    call = asyncio.create_task(ask(pool))
    await arrived.wait()
    pool.close()
    with pytest.raises(Broken):
        await call
    assert len(server.connections) == 1


async def test_tls_where_the_certificate_is_known_and_only_there() -> None:
    authority = trustme.CA()
    served, known = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("localhost").configure_cert(served)
    authority.configure_trust(known)
    server = Server("/unused")
    listening = await asyncio.start_server(server.talk, "127.0.0.1", 0, ssl=served)
    port = listening.sockets[0].getsockname()[1]
    endpoint = replace(read_endpoint(f"https://localhost:{port}"), tls=known)
    trusting = Pool(endpoint)
    assert [await ask(trusting), await ask(trusting)] == [b"ok", b"ok"]
    assert len(server.connections) == 1
    for stranger in (replace(endpoint, host="127.0.0.1"), read_endpoint(f"https://localhost:{port}")):
        with pytest.raises(Unreachable) as caught:
            await ask(Pool(stranger))
        assert caught.value.cause == "SSLCertVerificationError"
    trusting.close()
    listening.close()
    await asyncio.sleep(0.01)


@pytest.mark.parametrize("endpoint", ["unix:///nobody/here.sock", "http://127.0.0.1:1", "http://" + "x" * 70 + ".test"])
async def test_nobody_there(endpoint: str) -> None:
    with pytest.raises(Unreachable) as caught:
        await ask(Pool(read_endpoint(endpoint)))
    assert caught.value.cause.isidentifier()
