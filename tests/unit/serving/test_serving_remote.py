"""Remote APIs as a plan connects them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from router.asking.answer_cache import CAPACITY_ENV
from router.asking.fleet import Fleet
from router.config.deployments import Dialect
from router.config.plan import Plan
from router.generation import Generation
from router.observe import Metrics
from router.pipeline import Pipeline
from router.serving.errors import NotServable
from router.serving.prepare import connect
from router.verdict import Forward
from tests.support.fake_systemone import FakeSystemOne, default_card
from tests.support.plans import PLAIN, plan_of
from tests.unit.test_pipeline import body, post


class Ignored:
    def __getattr__(self, name: str) -> Any:
        return lambda *anything: None


def remote(fake: FakeSystemOne, path: str = "/v1/systemone", more: str = "") -> Plan:
    deployment = f"{{provider: systemone, endpoint: '{fake.endpoint}{path}', model: fake{more}}}"
    named = PLAIN.replace("{name: is_code, ", "{name: is_code, deployment: far, ")
    return plan_of(named + f"global: {{model_catalog: {{deployments: {{far: {deployment}}}}}}}\n")


async def chosen(generation: Generation, text: str) -> str | None:
    """The model that a request is forwarded to; None when no decision matches."""
    found = await Pipeline(generation, Metrics()).decided(post(), body(text=text))
    return found.model if isinstance(found, Forward) else None


@pytest.mark.parametrize("path", ["/v1/systemone", "/v1/decisions"])
async def test_a_remote_model_decides(tmp_path: Path, path: str) -> None:
    environ = {"KEY": "k-123"}
    async with asyncio.timeout(20), FakeSystemOne(tcp=True) as fake, Fleet(tmp_path, environ=environ) as fleet:
        fake.listing = None
        fake.answer("Is this code?", 0.9)
        generation = await connect(remote(fake, path, ", auth: {api_key_env: KEY}"), fleet, Ignored())
        assert await chosen(generation, "def f()") == "coder"
        (call,) = fake.calls
        assert (call.path, call.authorization, call.deadline_ms) == (path, "Bearer k-123", None)


async def test_an_api_that_lists_what_it_can_do_is_spoken_to_as_a_runtime(tmp_path: Path) -> None:
    async with asyncio.timeout(20), FakeSystemOne(tcp=True) as fake, Fleet(tmp_path) as fleet:
        generation = await connect(remote(fake), fleet, Ignored())
        assert generation.plan.deployments["far"].dialect is Dialect.RUNTIME
        fake.answer("Is this code?", 0.9)
        assert await chosen(generation, "def f()") == "coder"
        assert fake.calls[0].deadline_ms is not None


async def test_what_the_api_lists_decides_over_what_is_written(tmp_path: Path) -> None:
    async with asyncio.timeout(20), FakeSystemOne(tcp=True) as fake, Fleet(tmp_path) as fleet:
        fake.listing = {"data": [default_card("fake", ["choice"])]}
        with pytest.raises(NotServable, match="does not answer noul questions"):
            await connect(remote(fake), fleet, Ignored())


async def test_an_api_that_is_down_does_not_keep_the_router_from_starting(tmp_path: Path) -> None:
    async with asyncio.timeout(20), FakeSystemOne(tcp=True) as fake, Fleet(tmp_path) as fleet:
        plan = remote(fake)
        await fake.stop()
        generation = await connect(plan, fleet, Ignored())
        assert await chosen(generation, "def f()") is None


async def test_without_its_key_nothing_is_served(tmp_path: Path) -> None:
    async with FakeSystemOne(tcp=True) as fake, Fleet(tmp_path) as fleet:
        with pytest.raises(NotServable, match="decision model 'far': environment variable KEY is unset or empty"):
            await connect(remote(fake, more=", auth: {api_key_env: KEY}"), fleet, Ignored())


async def test_a_changed_configuration_forgets_what_a_remote_model_answered(tmp_path: Path) -> None:
    async with asyncio.timeout(20), FakeSystemOne(tcp=True) as fake, Fleet(tmp_path) as fleet:
        fake.answer("Is this code?", 0.9)
        old = await connect(remote(fake), fleet, Ignored())
        for _ in range(3):
            await chosen(old, "def f()")
        assert len(fake.calls) == 1
        new = await connect(remote(fake, more=", timeout_ms: 900"), fleet, Ignored())
        await chosen(new, "def f()")
        assert len(fake.calls) == 2
        assert old.connections.clients["far"] is new.connections.clients["far"]  # connections are kept


async def test_the_size_of_the_caches_is_the_environments(tmp_path: Path) -> None:
    environ = {CAPACITY_ENV: "0"}
    async with asyncio.timeout(20), FakeSystemOne(tcp=True) as fake, Fleet(tmp_path, environ=environ) as fleet:
        fake.answer("Is this code?", 0.9)
        generation = await connect(remote(fake), fleet, Ignored())
        for _ in range(2):
            await chosen(generation, "def f()")
        assert len(fake.calls) == 2
    with pytest.raises(ValueError, match=CAPACITY_ENV):
        Fleet(tmp_path, environ={CAPACITY_ENV: "lots"})


async def test_a_key_that_changed_is_used_by_the_next_plan(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("one")
    async with asyncio.timeout(20), FakeSystemOne(tcp=True) as fake, Fleet(tmp_path / "run") as fleet:
        fake.answer("Is this code?", 0.9)
        plan = remote(fake, more=f", auth: {{api_key_file: '{key}'}}")
        old = await connect(plan, fleet, Ignored())
        key.write_text("two")
        new = await connect(plan, fleet, Ignored())
        await chosen(new, "a")
        await chosen(old, "b")
        assert [call.authorization for call in fake.calls] == ["Bearer two", "Bearer one"]
