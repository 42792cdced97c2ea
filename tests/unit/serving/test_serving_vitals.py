from __future__ import annotations

import asyncio
import dataclasses
from types import SimpleNamespace
from typing import Any, cast

import pytest

from router.admin.status import Status
from router.asking.client import SystemOneClient
from router.asking.errors import CallOutcome, ConnectionFailed
from router.asking.placement import placement_of
from router.asking.replicas import Replicas
from router.asking.report import CallReport
from router.generation import Generation
from router.observe import Metrics
from router.serving.vitals import Vitals
from tests.support.plans import PLAIN, generation_of, plan_of

BOTH = PLAIN.replace("{name: is_code, ", "{name: is_code, deployment: far, ", 1) + (
    "global: {model_catalog: {deployments: {far: {provider: model_runtime, endpoint: 'http://127.0.0.1:9'}}}}\n"
)


class Rig:
    """One model of ours, `builtin`, and one that somebody else runs, `far`."""

    def __init__(self) -> None:
        self.generation: Generation | None = generation_of(plan_of(BOTH))
        self.process = SimpleNamespace(is_ready=False)
        processes = {"builtin": cast(Any, self.process)}
        self.generation.connections = dataclasses.replace(self.generation.connections, processes=processes)
        self.status, self.metrics = Status(accepting=True), Metrics()
        self.vitals = Vitals(self.status, self.metrics, lambda: self.generation)

    def called(self, deployment: str, outcome: CallOutcome, *, sent: bool = True) -> None:
        self.vitals.call_ended(CallReport(deployment, outcome, 0.01, 1, 1, sent))

    def lines(self, family: str) -> list[str]:
        return [line for line in self.metrics.render().decode().splitlines() if line.startswith(family)]


def test_readiness_follows_our_own_models() -> None:
    rig = Rig()
    assert not rig.vitals.publish()
    assert rig.status.detail()["ready"] is False
    rig.process.is_ready = True
    assert rig.vitals.publish()
    assert rig.status.detail()["ready"] is True
    assert rig.status.detail()["deployments"] == {"builtin": "ready"}
    assert rig.lines("vsr_model_runtime_ready{") == ['vsr_model_runtime_ready{deployment="builtin"} 1.0']


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (CallOutcome.OK, "answering"),
        (CallOutcome.OVERLOADED, "answering"),
        (CallOutcome.REJECTED, "answering"),
        (CallOutcome.UNAVAILABLE, "not answering"),
        (CallOutcome.FAILED, "not answering"),
        (CallOutcome.TIMEOUT, "not asked yet"),
    ],
)
def test_somebody_elses_model_is_reported_and_does_not_count(outcome: CallOutcome, told: str) -> None:
    rig = Rig()
    rig.process.is_ready = True
    rig.called("far", outcome)
    assert rig.vitals.publish()
    assert rig.status.ready
    assert rig.status.detail()["attached"] == {"far": told}


def test_calls_are_counted_by_outcome_and_timed_when_they_were_made() -> None:
    rig = Rig()
    rig.called("far", CallOutcome.OK)
    rig.called("builtin", CallOutcome.UNAVAILABLE, sent=False)
    assert rig.lines("vsr_model_runtime_requests_total") == [
        'vsr_model_runtime_requests_total{deployment="far",outcome="ok"} 1.0',
        'vsr_model_runtime_requests_total{deployment="builtin",outcome="unavailable"} 1.0',
    ]
    counts = rig.lines("vsr_model_runtime_request_duration_seconds_count")
    assert counts == ['vsr_model_runtime_request_duration_seconds_count{deployment="far",surface="systemone"} 1.0']


def test_calls_that_are_made_again_are_told_apart() -> None:
    rig = Rig()
    for again in (False, True, True):
        rig.vitals.call_ended(CallReport("far", CallOutcome.OK, 0.01, 1, 1, True, again=again))
    assert rig.lines("vsr_model_runtime_stage_decision_calls_total") == [
        'vsr_model_runtime_stage_decision_calls_total{deployment="far",round="first"} 1.0',
        'vsr_model_runtime_stage_decision_calls_total{deployment="far",round="again"} 2.0',
    ]


async def test_each_of_several_servers_is_told_of() -> None:
    rig = Rig()
    assert rig.generation is not None
    clients = [SystemOneClient(f"http://127.0.0.1:{port}") for port in (1, 2)]
    replicas = Replicas(clients, dispatched=lambda endpoint, how: rig.vitals.dispatched("far", endpoint, how))
    rig.generation.connections = dataclasses.replace(
        rig.generation.connections, clients={"far": replicas, "builtin": clients[0]}
    )
    with pytest.raises(ConnectionFailed):
        await replicas.decide(b"{}", 5)
    rig.vitals.publish()
    for port in (1, 2):
        labels = f'deployment="far",replica="http://127.0.0.1:{port}"'
        assert f"vsr_model_runtime_replica_ready{{{labels}}} 0.0" in rig.lines("vsr_model_runtime_replica_ready")
        assert f"vsr_model_runtime_replica_inflight{{{labels}}} 0.0" in rig.lines("vsr_model_runtime_replica_inflight")
    ended = [line.partition("outcome=")[2] for line in rig.lines("vsr_model_runtime_replica_requests_total")]
    assert [one.startswith('"unavailable"') for one in ended] == [True, True]
    for client in clients:
        await client.aclose()


def test_a_restart_is_counted_for_what_the_process_serves() -> None:
    rig = Rig()
    assert rig.generation is not None
    placement = placement_of(rig.generation.plan.deployments["builtin"])
    assert placement is not None
    rig.vitals.restarted(placement)
    rig.vitals.restarted(dataclasses.replace(placement, artifact="another"))
    assert rig.lines("vsr_model_runtime_restarts_total") == [
        'vsr_model_runtime_restarts_total{deployment="builtin"} 1.0'
    ]


def test_before_anything_serves() -> None:
    rig = Rig()
    rig.generation = None
    assert not rig.vitals.publish()
    assert rig.status.deployments == {}


async def test_a_beat_that_fails_is_not_the_last(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig()
    rig.status.clock = lambda: 1.0
    whole, rig.generation = rig.generation, cast(Any, SimpleNamespace())
    beating = asyncio.create_task(rig.vitals.beat())
    await asyncio.sleep(0)
    assert "reporting health failed" in caplog.text
    assert last_beat(rig.status) is None
    rig.generation = whole
    await asyncio.sleep(0.15)
    beating.cancel()
    assert last_beat(rig.status) == 1.0


def last_beat(status: Status) -> float | None:
    return status._last_beat
