"""Recording while a router runs: what is counted of it."""

from __future__ import annotations

from pathlib import Path

import orjson

from router.config.actions import Recording
from router.config.services import ReplaySettings
from router.observe import Metrics
from router.pipeline import Pipeline
from router.serving.recording import recording
from router.wire.http import Head
from tests.support.plans import PLAIN, ScriptedAsker, generation_of, plan_of

PLUGIN = "[{type: router_replay, configuration: {max_records: 10}}]"
OWN = PLAIN.replace("modelRefs: [{model: general}]", f"modelRefs: [{{model: general}}]\n        plugins: {PLUGIN}")
OWN += "global: {services: {router_replay: {path: /r.db}}}\n"


async def test_the_plugin_counts_as_run_where_it_records(tmp_path: Path) -> None:
    metrics, settings = Metrics(), ReplaySettings(str(tmp_path / "r.db"), 100, 0, Recording())
    pipeline = Pipeline(generation_of(plan_of(OWN), ScriptedAsker({})), metrics)
    with recording(settings, metrics, {}) as recorder:
        pipeline.show_to([recorder])
        for model in ("fixed", "auto", "general"):
            body = orjson.dumps({"model": model, "messages": [{"role": "user", "content": "hi"}]})
            await pipeline.decided(Head("POST", "/v1/chat/completions"), body)
    value = metrics.registry.get_sample_value
    labels = {"recipe": "fixed", "decision": "all", "plugin": "router_replay"}
    assert value("llm_plugin_execution_total", labels) == 1
    text = metrics.render().decode()
    assert text.count('plugin="router_replay"') == 1, "other records are no plugin's"
    assert value("pointsman_replay_records_total", {"outcome": "written"}) == 3
