"""A listener and real sockets: order, keeping, refusing, and clients that are slow, greedy or gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from router.runtime.http import connection
from router.runtime.http.listener import Listener
from router.runtime.http.message import Fault, Request, Response
from router.runtime.serve import Address, bind

LIMIT = 100_000
STATUS = {Fault.BODY_TOO_LARGE: 413, Fault.HEAD_TOO_LARGE: 431, Fault.TOO_SLOW: 408, Fault.MALFORMED: 400}


class Echo:
    """Answers with the path and the length of the body; `/held` waits to be released, `/no` is refused at its head."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.started: list[str] = []
        self.cancelled: list[str] = []
        self.again = asyncio.Event()

    def admit(self, request: Request) -> Response | None:
        return Response(403, b"no") if request.path == "/no" else None

    async def respond(self, request: Request) -> Response:
        self.started.append(request.path)
        self.again.set()
        if request.path == "/broken":
            raise KeyError
        try:
            if request.path == "/held":
                await self.released.wait()
        except asyncio.CancelledError:
            self.cancelled.append(request.path)
            self.again.set()
            raise
        if request.path == "/large":
            return Response(200, b"x" * 4_000_000)
        return Response(200, f"{request.path} {len(request.body)}".encode(), {"X-A": "b"})

    def refuse(self, fault: Fault, request: Request | None) -> Response:
        return Response(STATUS[fault], fault.value.encode())

    async def until(self, list_: list[str], length: int) -> None:
        while len(list_) < length:
            self.again.clear()
            await self.again.wait()


class Talk:
    """A client that says what it is told to, byte by byte if need be."""

    def __init__(self, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        self.reader, self.writer = streams

    def say(self, *data: bytes) -> None:
        self.writer.writelines(data)

    async def hear(self, method: str = "POST") -> tuple[int, dict[str, str], bytes]:
        """The next response."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:-2])}
        status = int(head[0].split()[1])
        length = 0 if method == "HEAD" or status == 100 else int(headers["content-length"])
        return status, headers, await self.reader.readexactly(length)

    async def ended(self) -> bool:
        return await self.reader.read() == b""

    def leave(self) -> None:
        self.writer.close()


class Place:
    def __init__(self, listener: Listener, app: Echo, path: str) -> None:
        self.listener = listener
        self.app = app
        self._path = path

    async def talk(self) -> Talk:
        return Talk(await asyncio.open_unix_connection(self._path))


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    path = str(tmp_path / "s")
    app = Echo()
    listener = Listener(app, LIMIT)
    sock = bind(Address(path, "", 0))
    await listener.start(sock)
    async with asyncio.timeout(20):
        yield Place(listener, app, path)
    await listener.stop(0)


def request(path: str = "/a", body: bytes = b"", *headers: str, method: str = "POST", version: str = "1.1") -> bytes:
    lines = [f"{method} {path} HTTP/{version}", "Host: h", *headers, f"Content-Length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def test_a_response_has_its_length_its_date_and_its_headers(place: Place) -> None:
    talk = await place.talk()
    talk.say(request(body=b"hello"))
    status, headers, body = await talk.hear()
    assert (status, body, headers["x-a"], headers["content-length"]) == (200, b"/a 5", "b", "4")
    assert headers["date"].endswith("GMT")
    assert "connection" not in headers
    talk.leave()


async def test_pipelined_requests_are_answered_in_order_one_at_a_time(place: Place) -> None:
    talk = await place.talk()
    talk.say(request("/held"), request("/b", b"x"), request("/no", b"yy"), request("/c"))
    await place.app.until(place.app.started, 1)
    assert place.app.started == ["/held"]
    place.app.released.set()
    heard = [await talk.hear() for _ in range(4)]
    assert [(status, body) for status, _, body in heard] == [
        (200, b"/held 0"),
        (200, b"/b 1"),
        (403, b"no"),
        (200, b"/c 0"),
    ]
    talk.leave()


async def test_many_pipelined_requests_are_all_answered(place: Place) -> None:
    talk = await place.talk()
    talk.say(*[request(f"/{number}", b"x" * 3000) for number in range(300)])
    assert [(await talk.hear())[2] for _ in range(300)] == [f"/{number} 3000".encode() for number in range(300)]
    talk.leave()


@pytest.mark.parametrize("many", [[b"x"] * 40, [b"x" * 90_000] * 2])
async def test_a_client_that_left_more_than_is_read_ends_its_request_too(
    place: Place, monkeypatch: pytest.MonkeyPatch, many: list[bytes]
) -> None:
    monkeypatch.setattr(connection, "GONE_S", 0.01)
    talk = await place.talk()
    talk.say(request("/held"), *[request("/behind", body) for body in many])
    await place.app.until(place.app.started, 1)
    await asyncio.sleep(0.05)  # it is looked at, and found there, before it leaves
    assert place.app.cancelled == []
    talk.writer.transport.abort()
    async with asyncio.timeout(10):
        await place.app.until(place.app.cancelled, 1)
    assert place.app.started == ["/held"]


async def test_a_request_may_come_byte_by_byte(place: Place) -> None:
    talk = await place.talk()
    for byte in request(body=b"hello"):
        talk.say(bytes([byte]))
        await talk.writer.drain()
    assert (await talk.hear())[2] == b"/a 5"
    talk.leave()


@pytest.mark.parametrize(
    ("header", "version", "said"),
    [
        ("Connection: close", "1.1", "close"),
        ("X: y", "1.0", "close"),
        ("Connection: keep-alive", "1.0", "keep-alive"),
    ],
)
async def test_who_keeps_a_connection_hears_so(place: Place, header: str, version: str, said: str) -> None:
    talk = await place.talk()
    talk.say(request("/a", b"", header, version=version))
    _, headers, _ = await talk.hear()
    assert headers["connection"] == said
    if said == "close":
        assert await talk.ended()
    talk.leave()


async def test_head_is_answered_without_a_body(place: Place) -> None:
    talk = await place.talk()
    talk.say(request("/a", method="HEAD"), request("/b"))
    _, headers, body = await talk.hear("HEAD")
    assert (headers["content-length"], body) == ("4", b"")
    assert (await talk.hear())[2] == b"/b 0"
    talk.leave()


async def test_a_refused_head_is_answered_before_its_body(place: Place) -> None:
    talk = await place.talk()
    talk.say(b"POST /no HTTP/1.1\r\nHost: h\r\nContent-Length: 50000\r\n\r\n", b"x" * 100)
    status, headers, _ = await talk.hear()
    assert (status, headers["connection"]) == (403, "close")
    assert await talk.ended()
    talk.say(b"x" * 40_000)
    talk.leave()
    assert place.app.started == []


async def test_a_refused_request_that_is_whole_keeps_the_connection(place: Place) -> None:
    talk = await place.talk()
    talk.say(request("/no", b"x" * 50_000))
    first = await talk.hear()
    talk.say(request("/a"))
    assert (first[0], (await talk.hear())[0]) in ((403, 200), (403, 403))
    talk.leave()


@pytest.mark.parametrize("chunked", [True, False])
async def test_a_body_past_the_limit_is_refused(place: Place, chunked: bool) -> None:
    talk = await place.talk()
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {LIMIT + 1}"
    talk.say(f"POST /a HTTP/1.1\r\nHost: h\r\n{length}\r\n\r\n".encode())
    if chunked:
        talk.say(*[b"3e8\r\n" + b"x" * 1000 + b"\r\n"] * (LIMIT // 1000 + 1))
    status, headers, _ = await talk.hear()
    assert (status, headers["connection"]) == (413, "close")
    assert await talk.ended()
    talk.leave()


async def test_a_body_of_the_limit_is_taken(place: Place) -> None:
    talk = await place.talk()
    talk.say(request(body=b"x" * LIMIT))
    assert (await talk.hear())[2] == f"/a {LIMIT}".encode()
    talk.leave()


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"\x16\x03\x01 TLS", 400), (b"GET / HTTP/1.1\r\nHost: h\r\nA: " + b"x" * 40_000 + b"\r\n\r\n", 431)],
)
async def test_what_is_no_request_is_refused_after_the_answers_that_are_due(
    place: Place, data: bytes, expected: int
) -> None:
    talk = await place.talk()
    talk.say(data)
    status, headers, _ = await talk.hear()
    assert (status, headers["connection"]) == (expected, "close")
    assert await talk.ended()
    talk.leave()
    talk = await place.talk()
    talk.say(request("/held"), request("/b"), data)
    await place.app.until(place.app.started, 1)
    place.app.released.set()
    assert [(await talk.hear())[2] for _ in range(2)] == [b"/held 0", b"/b 0"]
    assert await talk.ended()
    talk.leave()


async def test_a_client_that_asks_whether_to_go_on_is_told(place: Place) -> None:
    talk = await place.talk()
    talk.say(b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
    assert (await talk.hear())[0] == 100
    talk.say(b"hello")
    assert (await talk.hear())[2] == b"/a 5"
    talk.say(b"POST /no HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
    assert (await talk.hear())[0] == 403
    assert await talk.ended()
    talk.leave()


class Anywhere(Place):
    async def talk(self) -> Talk:
        if self._path.isdigit():
            return Talk(await asyncio.open_connection("127.0.0.1", int(self._path)))
        return await super().talk()


@pytest.fixture(params=["unix", "tcp"])
async def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Anywhere]:
    app, path = Echo(), str(tmp_path / "s")
    listener = Listener(app, LIMIT)
    sock = bind(Address(path, "", 0) if request.param == "unix" else Address(None, "127.0.0.1", 0))
    await listener.start(sock)
    async with asyncio.timeout(20):
        yield Anywhere(listener, app, path if request.param == "unix" else str(sock.getsockname()[1]))
    await listener.stop(0)


async def final(talk: Talk) -> tuple[int, bytes, str]:
    """The next response that is not an interim one."""
    while True:
        status, headers, body = await talk.hear()
        if status != 100:
            return status, body, headers.get("connection", "")


async def test_a_client_that_only_sends_no_more_is_answered(anywhere: Anywhere) -> None:
    talk = await anywhere.talk()
    talk.say(request("/held"), request("/b", b"x"), request("/cut", b"x" * 9)[:-1])
    talk.writer.write_eof()
    await anywhere.app.until(anywhere.app.started, 1)
    await asyncio.sleep(0.05)
    assert anywhere.app.cancelled == []
    anywhere.app.released.set()
    assert [await final(talk) for _ in range(2)] == [(200, b"/held 0", ""), (200, b"/b 1", "close")]
    assert await talk.ended()
    assert anywhere.app.started == ["/held", "/b"]
    talk.leave()


async def test_a_client_that_is_gone_ends_its_request_everywhere(anywhere: Anywhere) -> None:
    talk = await anywhere.talk()
    talk.say(request("/held"), request("/b"))
    await anywhere.app.until(anywhere.app.started, 1)
    talk.leave()
    async with asyncio.timeout(1):
        await anywhere.app.until(anywhere.app.cancelled, 1)
    assert anywhere.app.started == ["/held"]


async def test_a_client_that_sends_no_more_and_then_leaves_ends_its_request(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "GONE_S", 0.01)
    talk = await place.talk()
    talk.say(request("/held"))
    await place.app.until(place.app.started, 1)
    talk.writer.write_eof()
    await asyncio.sleep(0.05)
    assert place.app.cancelled == []
    talk.writer.transport.abort()
    async with asyncio.timeout(1):
        await place.app.until(place.app.cancelled, 1)


async def test_without_an_interim_response_a_client_that_may_be_gone_is(anywhere: Anywhere) -> None:
    """HTTP/1.0 knows none."""
    talk = await anywhere.talk()
    talk.say(request("/held", version="1.0"))
    await anywhere.app.until(anywhere.app.started, 1)
    talk.leave()
    async with asyncio.timeout(1):
        await anywhere.app.until(anywhere.app.cancelled, 1)


async def test_a_client_that_waits_for_nothing_ends_with_what_it_sends(anywhere: Anywhere) -> None:
    for sent in (b"", request("/a", b"xx")[:-1]):
        talk = await anywhere.talk()
        talk.say(sent)
        talk.writer.write_eof()
        async with asyncio.timeout(1):
            assert await talk.ended()
        talk.leave()
    assert anywhere.app.started == []


async def test_a_client_that_leaves_ends_its_request(place: Place) -> None:
    talk = await place.talk()
    talk.say(request("/held"))
    await place.app.until(place.app.started, 1)
    talk.leave()
    await place.app.until(place.app.cancelled, 1)


async def test_a_handler_that_fails_costs_its_connection_only(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    talk = await place.talk()
    talk.say(request("/broken"))
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await talk.hear()
    assert "a handler failed: KeyError" in caplog.text
    talk.leave()
    other = await place.talk()
    other.say(request())
    assert (await other.hear())[0] == 200
    other.leave()


@pytest.mark.parametrize("sent", [b"POST /a HTTP/1.1\r\nHost: h\r\nContent-Le", request(body=b"hello")[:-1]])
async def test_a_request_that_does_not_come_whole_is_given_up(
    place: Place, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "UPLOAD_S", 0.01)
    talk = await place.talk()
    talk.say(sent)
    status, headers, _ = await talk.hear()
    assert (status, headers["connection"]) == (408, "close")
    assert await talk.ended()
    talk.leave()


async def test_a_client_that_says_nothing_is_let_go(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "UPLOAD_S", 0.01)
    monkeypatch.setattr(connection, "IDLE_S", 0.02)
    served = await place.talk()
    served.say(request())
    assert (await served.hear())[0] == 200
    assert await served.ended()
    served.leave()
    silent = await place.talk()
    assert await silent.ended()
    silent.leave()


async def test_a_client_that_does_not_take_its_answer_is_let_go(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "UPLOAD_S", 0.05)
    talk = await place.talk()
    talk.say(request("/large"), request("/after"))
    await place.app.until(place.app.started, 1)
    await asyncio.sleep(0.3)  # the kernel's buffers and the reader's are full well before
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await talk.hear()
    assert place.app.started == ["/large"]
    talk.leave()


async def test_a_last_answer_that_is_not_taken_is_given_up(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "UPLOAD_S", 0.05)
    # As with an answer that is small enough for the loop to hold it without a word.
    monkeypatch.setattr(connection.Connection, "pause_writing", lambda _: None)
    talk = await place.talk()
    talk.say(request("/large", b"", "Connection: close"))
    await place.app.until(place.app.started, 1)
    await asyncio.sleep(0.3)
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await talk.hear()
    talk.leave()


async def test_a_long_request_is_not_taken_for_a_silent_client(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "UPLOAD_S", 0.01)
    talk = await place.talk()
    talk.say(request("/held"))
    await place.app.until(place.app.started, 1)
    await asyncio.sleep(0.05)
    place.app.released.set()
    assert (await talk.hear())[2] == b"/held 0"
    talk.leave()


async def test_stopping_lets_requests_finish_and_closes_the_rest(place: Place) -> None:
    idle, busy = await place.talk(), await place.talk()
    busy.say(request("/held"))
    await place.app.until(place.app.started, 1)
    stopping = asyncio.create_task(place.listener.stop(10))
    assert await idle.ended()
    place.app.released.set()
    _, headers, body = await busy.hear()
    assert (headers["connection"], body) == ("close", b"/held 0")
    await stopping
    with pytest.raises(OSError, match=r".*"):
        await place.talk()
    idle.leave()
    busy.leave()


async def test_stopping_waits_no_longer_than_told(place: Place) -> None:
    busy = await place.talk()
    busy.say(request("/held"))
    await place.app.until(place.app.started, 1)
    await place.listener.stop(0.01)
    assert place.app.cancelled == ["/held"]
    busy.leave()
