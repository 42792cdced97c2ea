"""Every way a reload can end, without processes: what serves, what is told, and what is let go of."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from router.admin.status import Status
from router.asking.errors import SupervisionError
from router.config.deployments import Deployment
from router.config.plan import Plan
from router.gateway.envoy.admin import AdminError, RejectedError
from router.generation import Generation
from router.observe import Metrics
from router.pipeline import Pipeline
from router.serving import reload as reloading
from router.serving.errors import NotServable
from router.serving.reload import RETRY_EVERY_S, SETTLE_S, SWITCH_S, Reloader, Surroundings
from router.serving.source import Source, read_source
from router.serving.watch import FileWatch
from tests.support.plans import EVERYTHING, PLAIN, generation_of

CHANGED = PLAIN.replace("qwen3-coder", "qwen4-coder")


class FakeFleet:
    def __init__(self) -> None:
        self.kept: list[list[str]] = []

    async def keep(self, deployments: Iterable[Deployment]) -> None:
        self.kept.append([one.name for one in deployments])


class FakeEnvoy:
    """Notes the revisions that are published, new and old, and fails when told to."""

    def __init__(self) -> None:
        self.published: list[tuple[str, str | None]] = []
        self.errors: list[Exception] = []

    async def publish(self, plan: Plan, previous: Plan | None = None) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.published.append((plan.revision, previous.revision if previous else None))


@dataclass
class Rig:
    path: Path
    first: Source
    generation: Generation
    status: Status = field(default_factory=Status)
    metrics: Metrics = field(default_factory=Metrics)
    fleet: FakeFleet = field(default_factory=FakeFleet)
    envoy: FakeEnvoy = field(default_factory=FakeEnvoy)
    swapped: list[str] = field(default_factory=list)
    naps: list[float] = field(default_factory=list)
    now: float = 0.0
    environ: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pipeline = Pipeline(self.generation, self.metrics)
        around = Surroundings(
            cast(Any, self.fleet),
            lambda artifact: EVERYTHING,
            cast(Any, None),
            self.status,
            self.metrics,
            cast(Any, self.envoy),
            1.0,
            self.environ,
            lambda source: self.swapped.append(source.plan.revision),
        )
        self.reloader = Reloader(
            self.path, self.generation, self.pipeline, around, clock=lambda: self.now, sleep=self.nap
        )

    async def nap(self, seconds: float) -> None:
        self.naps.append(seconds)
        await asyncio.sleep(0)

    @property
    def revision(self) -> str:
        return self.reloader.generation.plan.revision

    def count(self, outcome: str) -> float:
        series = f'pointsman_config_reloads_total{{outcome="{outcome}"}}'
        found = [line for line in self.metrics.render().decode().splitlines() if line.startswith(series)]
        return float(found[0].rsplit(" ", 1)[1]) if found else 0.0

    @asynccontextmanager
    async def retiring(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.reloader.retire())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    path = tmp_path / "pointsman.yaml"
    path.write_text(PLAIN)
    source = read_source(path, environ={}, describe=lambda artifact: EVERYTHING, serving=True)
    prepared(monkeypatch, generation_of)
    return Rig(path, source, generation_of(source.plan))


def prepared(monkeypatch: pytest.MonkeyPatch, how: Callable[[Plan], Generation | Awaitable[Generation]]) -> None:
    async def prepare(plan: Plan, *_: object, **__: object) -> Generation:
        made = how(plan)
        return made if isinstance(made, Generation) else await made

    monkeypatch.setattr(reloading, "prepare", prepare)


def raising(error: BaseException) -> Callable[[Plan], Generation]:
    def how(plan: Plan) -> Generation:
        raise error

    return how


class TestServed:
    async def test_envoy_knows_before_a_request_is_decided(self, rig: Rig) -> None:
        old = rig.revision
        rig.path.write_text(CHANGED)
        assert await rig.reloader.reload()
        assert rig.revision != old
        assert rig.envoy.published == [(rig.revision, old)]
        assert rig.naps == [SWITCH_S], "requests that Envoy has begun already reach the old plan"
        assert rig.swapped == [rig.revision]
        assert rig.status.revision == rig.revision
        assert rig.pipeline.session()._generation is rig.reloader.generation
        assert (rig.count("ok"), rig.status.reload_failure) == (1, None)

    async def test_the_old_goes_when_its_last_stream_has_ended(self, rig: Rig) -> None:
        async with rig.retiring():
            with rig.pipeline.session():
                rig.path.write_text(CHANGED)
                await rig.reloader.reload()
                for _ in range(5):
                    await asyncio.sleep(0)
                assert rig.fleet.kept == []
            async with asyncio.timeout(5):
                await rig.reloader._leaving.join()
        assert rig.fleet.kept == [["builtin"]]
        assert rig.naps == [SWITCH_S, SETTLE_S]
        assert rig.envoy.published[-1] == (rig.revision, None)

    async def test_the_old_stays_as_long_as_its_decisions_may_take(
        self, rig: Rig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reloading, "LEAVE_WITHIN_S", 0.0)
        for signal_timeout_s, kept in ((60.0, 0), (-SETTLE_S, 1)):
            rig.generation.signal_timeout_s = signal_timeout_s
            async with rig.retiring():
                with rig.pipeline.session():
                    rig.path.write_text(CHANGED if kept == 0 else PLAIN)
                    await rig.reloader.reload()
                    for _ in range(20):
                        await asyncio.sleep(0)
                    assert len(rig.fleet.kept) == kept
            rig.generation = rig.reloader.generation

    async def test_two_plans_at_most_live_in_envoy(self, rig: Rig) -> None:
        async with rig.retiring():
            revisions = [rig.revision]
            for number in range(3):
                rig.path.write_text(PLAIN.replace("qwen3-coder", f"coder-{number}"))
                assert await rig.reloader.reload()
                revisions.append(rig.revision)
            await rig.reloader._leaving.join()
        steps = [((new, old), (new, None)) for old, new in itertools.pairwise(revisions)]
        assert rig.envoy.published == [step for pair in steps for step in pair]

    async def test_a_text_that_means_the_same_changes_nothing(self, rig: Rig) -> None:
        rig.path.write_text("# a remark\n" + PLAIN)
        generation = rig.reloader.generation
        assert await rig.reloader.reload()
        assert rig.envoy.published == []
        assert rig.reloader.generation is generation
        assert rig.count("ok") == 1

    async def test_clearing_up_that_fails_is_not_the_end(self, rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
        async with rig.retiring():
            rig.path.write_text(CHANGED)
            await rig.reloader.reload()
            rig.envoy.errors = [AdminError("away")]
            await rig.reloader._leaving.join()
            rig.path.write_text(PLAIN)
            assert await rig.reloader.reload()
        assert "Envoy still has the old backends" in caplog.text


INVALID: dict[str, tuple[str, str]] = {
    "syntax": (PLAIN.replace("v0.5", "[v0.5"), "pointsman.yaml:"),
    "unknown key": (PLAIN.replace("decisions:", "decisons:"), "decisons"),
    "dangling": (PLAIN.replace("[{model: coder}]", "[{model: codr}]"), "codr"),
    "unset": (PLAIN.replace("qwen3-coder", '"${UNSET}"'), "UNSET"),
    "key": (
        PLAIN.replace('"http://127.0.0.1:9102/v1"', '"https://api.test/v1", auth: {api_key_env: KEY_THAT_IS_NOT_SET}'),
        "KEY_THAT_IS_NOT_SET",
    ),
    "empty": ("", "pointsman.yaml"),
}


class TestRefused:
    def assert_nothing_changed(self, rig: Rig, outcome: str, told: str) -> None:
        assert rig.revision == rig.first.plan.revision
        assert rig.reloader.generation is rig.generation
        assert rig.pipeline.session()._generation is rig.generation
        assert rig.swapped == []
        assert rig.count(outcome) == 1
        detail = json.loads(json.dumps(rig.status.detail()))["config"]
        assert detail["status"] == outcome
        assert told in str(detail["problems"])
        assert b"pointsman_config_last_reload_successful 0.0" in rig.metrics.render()

    @pytest.mark.parametrize("kind", INVALID)
    async def test_an_invalid_file(self, rig: Rig, kind: str) -> None:
        text, told = INVALID[kind]
        rig.path.write_text(text)
        assert not await rig.reloader.reload()
        self.assert_nothing_changed(rig, "invalid", told)
        assert rig.envoy.published == []

    async def test_a_file_that_is_gone(self, rig: Rig) -> None:
        rig.path.unlink()
        assert not await rig.reloader.reload()
        self.assert_nothing_changed(rig, "invalid", "cannot be read: No such file")

    @pytest.mark.parametrize(
        "more",
        ["services: {metrics: {port: 9999}}", "router: {max_body_bytes: 65536}", "router: {clear_route_cache: false}"],
    )
    async def test_what_only_a_restart_can_change(self, rig: Rig, more: str) -> None:
        rig.path.write_text(CHANGED + f"global: {{{more}}}\n")
        assert not await rig.reloader.reload()
        self.assert_nothing_changed(rig, "restart_required", "needs a restart")

    @pytest.mark.parametrize(
        ("error", "told"),
        [
            (NotServable(["'a' does not answer", "nor does 'b'"]), "nor does 'b'"),
            (SupervisionError("it ended 3 times"), "it ended 3 times"),
            (OSError(28, "No space left"), "No space left"),
            (KeyError("a prompt"), "internal error: KeyError"),
        ],
    )
    async def test_models_that_cannot_be_had(
        self, rig: Rig, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
    ) -> None:
        prepared(monkeypatch, raising(error))
        rig.path.write_text(CHANGED)
        assert not await rig.reloader.reload()
        self.assert_nothing_changed(rig, "failed", told)
        assert rig.fleet.kept == [["builtin"]], "what was started for the new plan is ended"
        assert "a prompt" not in str(rig.status.detail())

    @pytest.mark.parametrize("error", [RejectedError("listeners.json", "port in use"), AdminError("does not answer")])
    async def test_an_envoy_that_does_not_take_it(self, rig: Rig, error: Exception) -> None:
        rig.envoy.errors = [error]
        rig.path.write_text(CHANGED)
        assert not await rig.reloader.reload()
        self.assert_nothing_changed(rig, "failed", str(error))

    async def test_a_mended_file_serves_and_clears_the_complaint(self, rig: Rig) -> None:
        rig.path.write_text("nonsense: [")
        await rig.reloader.reload()
        rig.path.write_text(CHANGED)
        assert await rig.reloader.reload()
        assert rig.status.reload_failure is None
        assert b"pointsman_config_last_reload_successful 1.0" in rig.metrics.render()

    async def test_going_back_to_what_serves_clears_the_complaint(self, rig: Rig) -> None:
        rig.path.write_text("nonsense: [")
        await rig.reloader.reload()
        rig.path.write_text(PLAIN)
        assert await rig.reloader.reload()
        assert rig.status.reload_failure is None
        assert rig.swapped == []


async def run_for(rig: Rig, done: Callable[[], bool]) -> None:
    """Run the reloader until `done`."""
    watch = FileWatch(rig.path, rig.first.text)
    async with asyncio.timeout(10):
        tasks = [asyncio.create_task(rig.reloader.run(watch)), asyncio.create_task(rig.reloader.retire())]
        while not done():
            assert not any(task.done() for task in tasks)
            await asyncio.sleep(0.001)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class TestFollowing:
    async def test_what_fails_for_reasons_outside_the_file_is_tried_again(self, rig: Rig) -> None:
        rig.envoy.errors = [AdminError("it restarts"), AdminError("it restarts")]
        rig.path.write_text(CHANGED)

        def done() -> bool:
            rig.now += RETRY_EVERY_S / 50
            return bool(rig.swapped)

        await run_for(rig, done)
        assert (rig.count("failed"), rig.count("ok")) == (2, 1)

    async def test_a_bad_file_is_complained_about_once(self, rig: Rig) -> None:
        rig.path.write_text("nonsense: [")

        def done() -> bool:
            rig.now += 1
            return rig.now > 100

        await run_for(rig, done)
        assert rig.count("invalid") == 1

    async def test_a_file_that_changes_while_models_are_waited_for(
        self, rig: Rig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reloading, "LOOK_EVERY_S", 0.001)
        waited: list[str] = []

        async def how(plan: Plan) -> Generation:
            waited.append(plan.models["coder"].provider_model_id)
            if len(waited) == 1:
                rig.path.write_text(PLAIN.replace("qwen3-coder", "the-newest"))
                await asyncio.Event().wait()  # a model that loads for ever
            return generation_of(plan)

        prepared(monkeypatch, how)
        rig.path.write_text(CHANGED)
        await run_for(rig, lambda: bool(rig.swapped))
        assert waited == ["qwen4-coder", "the-newest"]
        assert rig.fleet.kept[0] == ["builtin"]
        assert rig.count("ok") == 1

    async def test_an_attached_model_that_comes_late_is_described_then(
        self, rig: Rig, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        silent = [("far",), ("far",), ()]
        connected: list[Generation] = []

        async def connect(plan: Plan, *_: object) -> Generation:
            connected.append(generation_of(plan))
            silent.pop(0)
            return connected[-1]

        monkeypatch.setattr(reloading, "connect", connect)
        monkeypatch.setattr(reloading, "undescribed", lambda plan: silent[0])

        def done() -> bool:
            rig.now += RETRY_EVERY_S / 10
            return rig.now > 10 * RETRY_EVERY_S

        await run_for(rig, done)
        assert len(connected) == 2
        assert rig.reloader.generation is connected[1]
        assert rig.envoy.published == [], "the same plan: Envoy has nothing to learn"
