"""The router's pipeline with a decision model that it starts itself, without Envoy and without gRPC."""

from __future__ import annotations

import inspect
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson

from bench.lib.process import StartError
from router.asking.fleet import Fleet
from router.asking.report import CallReport
from router.config.load import load
from router.observe import Metrics
from router.pipeline import Pipeline
from router.runtime.artifact import describe
from router.serving.prepare import prepare
from router.verdict import Forward
from router.wire.http import Head

_PATH = "/v1/chat/completions"


def configuration(artifact: str, device: str) -> str:
    """One preset question decides. YAML, since JSON is."""
    backend = {"backend_refs": [{"endpoint": "http://127.0.0.1:9/v1"}]}
    rule = {
        "name": "domain",
        "deployment": "bench",
        "preset": "domains",
        "timeout_ms": 60_000,
    }
    condition = {"type": "systemone", "name": "domain", "label": "math"}
    return json.dumps(
        {
            "version": "v0.5",
            "listeners": [{"name": "bench", "address": "127.0.0.1", "port": 8801}],
            "providers": {
                "defaults": {"model": "small"},
                "models": [{"name": "small", **backend}, {"name": "large", **backend}],
            },
            "recipes": [
                {
                    "name": "default",
                    "signals": {"systemone": [rule]},
                    "decisions": [{"name": "math", "rules": condition, "modelRefs": [{"model": "large"}]}],
                }
            ],
            "entrypoints": [{"model_names": ["auto"], "recipe": "default"}],
            "global": {
                "model_catalog": {
                    "deployments": {"bench": {"provider": "model_runtime", "artifact": artifact, "device": device}}
                }
            },
        }
    )


@asynccontextmanager
async def running(artifact: str, device: str, states: Iterator[str]) -> AsyncIterator[Timed]:
    """The pipeline, once its model has answered."""
    plan = load(configuration(artifact, device), environ=os.environ, describe=describe, serving=True).plan
    metrics = Metrics()
    with tempfile.TemporaryDirectory(prefix="bench-") as sockets:
        async with Fleet(Path(sockets), environ=os.environ) as fleet:
            generation = await prepare(plan, fleet, _Unheard(), ready_within_s=120)
            yield Timed(Pipeline(generation, metrics), metrics, states)


class _Unheard:
    """Hears of every call and keeps nothing."""

    def call_ended(self, report: CallReport) -> None:
        """Nothing."""

    def looked_up(self, deployment: str, hits: int, shared: int, misses: int) -> None:
        """Nothing."""


class Timed:
    """A pipeline whose requests are timed."""

    def __init__(self, pipeline: Pipeline, metrics: Metrics, states: Iterator[str]) -> None:
        self._pipeline = pipeline
        self._metrics = metrics
        self._states = states

    async def once(self) -> float:
        """Milliseconds from a request's body to its verdict; raises StartError when it was not decided."""
        body = orjson.dumps({"model": "auto", "messages": [{"role": "user", "content": next(self._states)}]})
        before = time.perf_counter()
        verdict = self._pipeline.on_request(Head("POST", _PATH, {}), body)
        if inspect.isawaitable(verdict):
            verdict = await verdict
        spent = (time.perf_counter() - before) * 1000
        if not isinstance(verdict, Forward):
            raise StartError("the pipeline did not decide a request")
        return spent

    def prove(self) -> None:
        """Raises StartError when any question went unanswered until now."""
        if b"vsr_model_runtime_unknown_answers_total{" in self._metrics.render():
            raise StartError("the pipeline's question went unanswered")
