"""Previews over real HTTP: the admin thread asks, the serving loop decides."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from router.admin.access import Access
from router.admin.api import Desk
from router.admin.bridge import Bridge, Busy, Gone
from router.admin.previews import Previewer
from router.admin.server import AdminServer, management_app
from router.admin.status import Status
from router.config.plan import Service
from router.generation import Generation
from router.questions import NoulAnswer
from tests.support.plans import ScriptedAsker, generation_of, plan_of

TOKEN = "t" * 20
CANARY = "canary-77-marker"


class Stuck(ScriptedAsker):
    async def ask(self, stage: object, texts: Any, **more: object) -> SimpleNamespace:
        await asyncio.Event().wait()
        raise AssertionError


class Serving:
    """A serving loop on a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()

    def made(self, asker: ScriptedAsker) -> Generation:
        async def make() -> Generation:
            return generation_of(plan_of(), asker)

        return asyncio.run_coroutine_threadsafe(make(), self.loop).result()

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


@pytest.fixture
def serving() -> Iterator[Serving]:
    started = Serving()
    yield started
    if not started.loop.is_closed():
        started.stop()


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def address(desk: Desk) -> Iterator[str]:
    server = AdminServer([(Service("127.0.0.1", 0), management_app(Status(), desk, max_body_bytes=4096))])
    server.start()
    yield f"http://127.0.0.1:{server.ports[0]}/api/v1/routing/preview"
    server.stop()


def post(url: str, body: object, **headers: str) -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def previewer(serving: Serving, asker: ScriptedAsker | None = None) -> Previewer:
    generation = serving.made(asker or ScriptedAsker({"is_code": NoulAnswer(0.9)}))
    return Previewer(Bridge(serving.loop), lambda: generation)


def test_a_preview_decides_and_sends_nothing(desk: Desk, address: str, serving: Serving) -> None:
    asker = ScriptedAsker({"is_code": NoulAnswer(0.9)})
    desk.previewer = previewer(serving, asker)
    status, body = post(address + "?trace=true", {"model": "auto", "text": CANARY})
    assert (status, body["routing_decision"], body["selected_model"]) == (200, "code", "coder")
    assert body["eval_trace"][0]["decision_name"] == "code"
    assert CANARY not in json.dumps(body)
    assert [list(texts.values()) for texts in asker.asked] == [[CANARY]]


def test_the_trace_and_the_text_are_given_when_asked_for(desk: Desk, address: str, serving: Serving) -> None:
    desk.previewer = previewer(serving)
    _, body = post(address + "?text=true", {"model": "auto", "messages": [{"role": "user", "content": CANARY}]})
    assert body["original_text"] == CANARY
    assert "eval_trace" not in body


@pytest.mark.parametrize("query", ["?trace=yes", "?traces=true", "?text="])
def test_a_wish_that_is_not_understood_is_said(query: str, desk: Desk, address: str, serving: Serving) -> None:
    desk.previewer = previewer(serving)
    status, body = post(address + query, {"model": "auto", "text": CANARY})
    assert (status, body["error"]["code"]) == (400, "invalid_request")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "invalid_json"),
        ({"model": "auto", "messages": CANARY}, "invalid_request"),
        ({"text": 3}, "invalid_request"),
    ],
)
def test_what_cannot_be_read_is_told(desk: Desk, address: str, serving: Serving, body: object, code: str) -> None:
    desk.previewer = previewer(serving)
    status, answer = post(address, body)
    assert (status, answer["error"]["code"]) == (400, code)
    assert CANARY not in json.dumps(answer)


def test_before_anything_serves(address: str) -> None:
    assert post(address, {"text": "a"})[0] == 503


def test_other_ways_to_ask_are_refused_in_json(address: str) -> None:
    assert post(address, b"x" * 5000)[0] == 503  # not read before there is something to do with it
    assert post(address.replace("preview", "prefiew"), {})[1]["error"]["code"] == "not_found"
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(address)
    with caught.value as failed:
        assert (failed.code, failed.headers["Allow"]) == (405, "POST")


def test_a_body_that_is_too_large(desk: Desk, address: str, serving: Serving) -> None:
    desk.previewer = previewer(serving)
    assert post(address, b"x" * 5000)[0] == 413


def test_a_token_is_needed_where_there_are_tokens(desk: Desk, address: str, serving: Serving) -> None:
    desk.access = Access([(TOKEN, frozenset({"write"})), (TOKEN[::-1] + "r", frozenset({"read"}))])
    desk.previewer = previewer(serving)
    assert post(address, {"text": "a"})[1]["error"]["code"] == "invalid_token"
    assert post(address, {"text": "a"}, Authorization=f"Bearer {TOKEN}")[0] == 403
    assert post(address, {"text": "a"}, Authorization=f"Bearer {TOKEN}r")[0] == 200


def test_a_page_that_a_browser_shows_cannot_ask(address: str) -> None:
    assert post(address, {"text": "a"}, Host="evil.example")[0] == 403


class TestBridge:
    async def test_what_takes_too_long_is_cancelled_there(self, serving: Serving) -> None:
        ended = threading.Event()

        async def slow() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        with pytest.raises(TimeoutError):
            await Bridge(serving.loop).call(slow, within_s=0.01)
        assert await asyncio.to_thread(ended.wait, 5)

    async def test_only_so_much_at_once(self, serving: Serving) -> None:
        bridge = Bridge(serving.loop, most=1)
        generation = serving.made(Stuck())
        first = asyncio.ensure_future(
            Previewer(bridge, lambda: generation).preview(b'{"text":"a"}', trace=False, text=False)
        )
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await bridge.call(lambda: asyncio.sleep(0), within_s=1)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await bridge.call(lambda: asyncio.sleep(0), within_s=1)

    async def test_a_loop_that_is_gone(self, serving: Serving) -> None:
        serving.stop()
        with pytest.raises(Gone):
            await Bridge(serving.loop).call(lambda: asyncio.sleep(0), within_s=1)
