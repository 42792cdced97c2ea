"""Nothing of a request is alive once it is answered, refused, failed or given up: nothing waits for a collection."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from router.runtime import body
from router.runtime.asking import Failure
from router.runtime.body import read_body
from router.runtime.errors import Overloaded
from router.runtime.handover import Handover
from router.runtime.http.connection import Connection
from router.runtime.http.message import Request
from router.runtime.http.reader import Arrival
from router.runtime.jobs import Computed
from router.runtime.model import Model
from router.runtime.off_loop import off_loop
from router.runtime.rows import RowPlan
from router.runtime.scheduler import Scheduler
from router.runtime.server import Server
from tests.support.runtime_client import PATH, listening
from tests.unit.runtime.test_runtime_scheduler import WAIT, Graph, row

NOUL = {"type": "noul", "instructions": "law"}


class Text(str):
    """Text that can be watched."""

    __slots__ = ("__weakref__",)


@pytest.fixture(autouse=True)
def _uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def graph() -> Graph:
    return Graph()


@pytest.fixture
def scheduler(graph: Graph) -> Iterator[Scheduler]:
    scheduler = Scheduler(graph.run)
    yield scheduler
    graph.permits.release(1000)
    scheduler.close()


def planning(watched: list[weakref.ref[Any]], then: Callable[[], None] = lambda: None) -> Callable[[], list[RowPlan]]:
    """A plan that holds a text, and makes a plan that holds another."""
    held, kept = Text("state"), Text("kept by the adapter")
    watched += [weakref.ref(held), weakref.ref(kept)]

    def plan(held: Text, kept: Text) -> list[RowPlan]:
        then()
        return [RowPlan([row(len(held))], 5, kept)]

    return partial(plan, held, kept)


async def gone(watched: list[weakref.ref[Any]]) -> bool:
    """Whether all of it is, as soon as the threads have turned round."""
    for _ in range(200):
        if all(one() is None for one in watched):
            return bool(watched)
        await asyncio.sleep(0.005)
    return False


async def test_an_answered_request_leaves_nothing(graph: Graph, scheduler: Scheduler) -> None:
    graph.permits.release(10)
    watched: list[weakref.ref[Any]] = []
    with ThreadPoolExecutor(1) as planner:
        handover = Handover(scheduler, planning(watched), None)
        planner.submit(handover.prepare)
        outcome = await handover.computed()
        assert isinstance(outcome[1], Computed)
        del outcome
        assert await gone(watched), "though the handover itself is still there"
    seen = weakref.ref(scheduler.submit([row(3)]))
    assert await gone([seen]), "nor does the resting worker hold what it did last"


async def test_a_lent_request_leaves_nothing(graph: Graph, scheduler: Scheduler) -> None:
    graph.permits.release(10)
    watched: list[weakref.ref[Any]] = []
    handover = Handover(scheduler, planning(watched), None)
    while not scheduler.lend(handover.prepare):  # noqa: ASYNC110  what is waited for happens in another thread
        await asyncio.sleep(0)
    await handover.computed()
    del handover
    assert await gone(watched)


async def test_a_failed_request_leaves_nothing(graph: Graph, scheduler: Scheduler) -> None:
    def broken() -> None:
        raise KeyError

    graph.fail = True
    graph.permits.release(10)
    for then, deadline in ((None, None), (None, 0.0), (broken, None)):
        watched: list[weakref.ref[Any]] = []
        handover = Handover(scheduler, planning(watched, then) if then else planning(watched), deadline)
        with ThreadPoolExecutor(1) as planner:
            planner.submit(handover.prepare)
            try:
                assert isinstance((await handover.computed())[1], Failure)
            except KeyError:
                assert then is not None
        del handover
        assert await gone(watched), (then, deadline)


async def test_a_refused_request_leaves_nothing(scheduler: Scheduler) -> None:
    object.__setattr__(scheduler._bounds, "requests", 0)
    watched: list[weakref.ref[Any]] = []
    handover = Handover(scheduler, planning(watched), None)
    handover.prepare()
    with pytest.raises(Overloaded):
        await handover.computed()
    del handover
    assert await gone(watched)


@pytest.mark.parametrize("when", ["before it is planned", "while it is planned", "while it waits", "while it runs"])
async def test_a_request_that_is_given_up_leaves_nothing(graph: Graph, scheduler: Scheduler, when: str) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        if when == "while it is planned":
            assert go_on.wait(WAIT)

    if when == "while it waits":
        scheduler.submit([row(9)])
        graph.started()
    watched: list[weakref.ref[Any]] = []
    handover = Handover(scheduler, planning(watched, hold), None)
    waiting = asyncio.create_task(handover.computed())
    await asyncio.sleep(0)
    with ThreadPoolExecutor(1) as planner:
        if when == "before it is planned":
            waiting.cancel()
            await asyncio.wait([waiting])
        planner.submit(handover.prepare)
        if when != "before it is planned":
            await asyncio.to_thread(begun.wait, WAIT)
        if when in ("while it waits", "while it runs"):
            await asyncio.sleep(0.05)
        waiting.cancel()
        await asyncio.wait([waiting])
        go_on.set()
    del handover, waiting
    assert await gone(watched)
    graph.permits.release(10)


async def test_what_a_thread_makes_or_raises_is_not_kept() -> None:
    watched: list[weakref.ref[Any]] = []

    def make(raising: bool) -> Text:
        text = Text("made")
        watched.append(weakref.ref(text))
        if raising:
            raise KeyError(text)
        return text

    with ThreadPoolExecutor(1) as pool:
        assert await off_loop(pool, partial(make, False)) == "made"
        with pytest.raises(KeyError):
            await off_loop(pool, partial(make, True))
        assert await gone(watched)


@pytest.mark.parametrize("options", [{}, {"deadline_ms": 0.001}])
@pytest.mark.parametrize("times", [1, 2000])
async def test_a_model_keeps_no_state_that_it_was_asked_about(
    tiny_model: Model, options: dict[str, float], times: int
) -> None:
    state = Text("law and filler " * times)
    watched: list[weakref.ref[Any]] = [weakref.ref(state)]
    questions = {"q": NOUL, "p": {"type": "span", "instructions": "where", "labels": [{"key": "law"}]}}
    body = read_body({"state": state, "questions": questions, "options": options})
    asking = await tiny_model.ask(body, 0.0 if options else None)
    del state, body, asking
    assert await gone(watched)


async def talk(url: str, data: bytes, *, leave: bool) -> None:
    host, _, port = url.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n" % PATH.encode() + data)
    if not leave:
        await reader.readuntil(b"\r\n\r\n")
    else:
        await asyncio.sleep(0.02)
    writer.close()
    await writer.wait_closed()


QUESTIONS = {"q": NOUL}
WHOLE: dict[str, Any] = {
    "answered": {"state": ["law"], "questions": QUESTIONS},
    "no valid request": {"state": 3, "questions": QUESTIONS},
    "late": {"state": ["law"], "questions": QUESTIONS, "options": {"deadline_ms": 0.000001}},
    "another model": {"model": "other", "state": ["law"], "questions": QUESTIONS},
    "left": {"state": ["law " * 30_000], "questions": QUESTIONS},
}


@pytest.mark.parametrize("kind", [*WHOLE, "not JSON", "cut short"])
async def test_an_exchange_leaves_nothing(tiny_model: Model, kind: str) -> None:
    server = Server()
    server.model = tiny_model
    data = json.dumps(WHOLE.get(kind, WHOLE["answered"])).encode().ljust(200_000)
    data = data.replace(b"}", b"]") if kind == "not JSON" else data[: 100_000 if kind == "cut short" else None]
    kinds = (body.Block, body.Body, Request, Arrival, Connection)

    def alive() -> list[str]:
        return [type(one).__name__ for one in gc.get_objects() if isinstance(one, kinds)]

    async with listening(server) as url:
        before = alive()
        await talk(url, data, leave=kind in ("left", "cut short"))
        for _ in range(200):
            if alive() == before:
                break
            await asyncio.sleep(0.01)
        assert alive() == before
