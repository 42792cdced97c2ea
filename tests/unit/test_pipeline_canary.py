"""What a client writes is kept out of logs, metrics, traces, errors and stores, wherever in a request it stands."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from router.config.services import DEBUG_HEADER
from router.explaining.debugging import Debugger
from router.explaining.spans import Tracer
from router.gateway.transport import report
from router.observe import Metrics
from router.observe.logs import configure_logging
from router.observe.tracing import Spans
from router.pipeline import Pipeline
from router.questions import Answer, ChoiceAnswer, NoulAnswer
from router.verdict import Forward
from router.wire.http import Head, Reply
from tests.support.canary import DOCUMENTS, planted
from tests.support.plans import ScriptedAsker, generation_of, plan_of
from tests.unit.explaining.test_explaining_records import Recording, on_disk

CANARY = "canary-4f1d-marker"
BACKEND = 'backend_refs: [{endpoint: "http://127.0.0.1:9101/v1"}]'
CONFIGURATION = f"""\
version: v0.5
listeners: [{{name: public, address: 127.0.0.1, port: 8801, debug: {{allow: true}}}}]
providers:
  models:
    - {{name: coder, {BACKEND}}}
    - {{name: general, {BACKEND}}}
    - {{name: writer, api_format: responses, {BACKEND}}}
    - {{name: claude, api_format: anthropic, {BACKEND}}}
recipes:
  - name: everything
    signals:
      keywords:
        - {{name: billing, method: exact, keywords: [refund]}}
        - {{name: near, method: fuzzy, keywords: [invoice]}}
      language: [{{name: en}}]
      context: [{{name: long, min_tokens: 32K}}]
      metadata: [{{name: team, key: team, predicate: {{equals: blue}}}}]
      input_modality: [{{name: image, modality: image}}]
      systemone: [{{name: code, question: {{type: noul, instructions: Code?}}}}]
      user_feedbacks: [{{name: mood}}]
    decisions:
      - name: all
        rules:
          operator: OR
          conditions:
            - {{type: keyword, name: billing}}
            - {{type: keyword, name: near}}
            - {{type: language, name: en}}
            - {{type: context, name: long}}
            - {{type: metadata, name: team}}
            - {{type: input_modality, name: image}}
            - {{type: systemone, name: code}}
            - {{type: user_feedback, name: mood, label: satisfied}}
        modelRefs: [{{model: coder}}, {{model: general}}, {{model: writer}}, {{model: claude}}]
        algorithm: {{type: systemone}}
        plugins:
          - {{type: decision_diagnostics}}
          - {{type: system_prompt, configuration: {{system_prompt: Be kind.}}}}
          - {{type: request_params, configuration: {{strip_unknown: true}}}}
entrypoints: [{{model_names: [auto], recipe: everything, default: true}}]
"""
ANSWERS: dict[str, Answer] = {
    "systemone:code": NoulAnswer(0.9),
    "code": NoulAnswer(0.9),
    "user_feedback:mood": ChoiceAnswer("satisfied", {"satisfied": 1.0}, 1.0),
}


class Failing(ScriptedAsker):
    """Fails as a library might: with what it could not read in the message of its error."""

    async def ask(self, stage: object, texts: Mapping[Any, str], **more: object) -> Any:
        raise ValueError(f"cannot read {list(texts.values())} {CANARY}")


class Watched:
    """A pipeline with everything that looks at requests, and all that it leaves behind."""

    def __init__(self, folder: Path, asker: ScriptedAsker) -> None:
        self.metrics, self.exporter, self.folder = Metrics(), InMemorySpanExporter(), folder
        self.spans = Spans("", service="test", version="0", sample=1.0, exporter=self.exporter)
        self.recording = Recording(folder)
        self.told: list[object] = []
        self.pipeline = Pipeline(generation_of(plan_of(CONFIGURATION), asker), self.metrics)
        self.pipeline.show_to([Tracer(self.spans), self.recording.recorder, Debugger()])

    async def send(self, path: str, body: bytes) -> Reply | Forward | None:
        """Let it decide; what is told to the client and to Envoy is kept."""
        headers = {DEBUG_HEADER: "true", "x-session-id": CANARY, "x-request-id": CANARY, "content-type": CANARY}
        try:
            verdict = await self.pipeline.decided(Head("POST", path, headers), body)
        except Exception as error:
            report(error)
            return None
        if isinstance(verdict, Forward):
            self.told.append((verdict.model, verdict.set_headers, verdict.metadata, verdict.structs))
        else:
            self.told.append(verdict)
        return verdict

    def left(self) -> Iterator[tuple[str, str]]:
        """Everything that is kept or told, by what it is."""
        self.spans.close()
        yield "spans", "\n".join(span.to_json() for span in self.exporter.get_finished_spans())
        yield "metrics", self.metrics.render().decode()
        yield "told", repr(self.told)
        yield "records", "\n".join(map(repr, self.recording.records(content=True)))
        yield "store", repr(on_disk(self.folder))


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    stream = io.StringIO()
    configure_logging("debug", stream)
    yield stream
    root.handlers[:], root.level = before


@pytest.mark.parametrize("asker", [ScriptedAsker(ANSWERS), Failing()], ids=["answered", "failing"])
@pytest.mark.parametrize("path", DOCUMENTS)
async def test_a_marker_in_any_text_is_told_nowhere(
    path: str, asker: ScriptedAsker, tmp_path: Path, log: io.StringIO
) -> None:
    watched = Watched(tmp_path, asker)
    sent = 0
    for document in planted(DOCUMENTS[path], CANARY):
        whole = orjson.dumps(document)
        assert CANARY.encode() in whole
        for body in (whole, whole[:-1]):
            await watched.send(path, body)
            sent += 1
    assert sent >= 200
    left = dict(watched.left())
    assert left["spans"].count('"semantic_router.request.received"') >= sent // 2
    assert len(left["records"].splitlines()) >= 50
    for kind, text in left.items():
        assert CANARY not in text, (kind, text[max(text.find(CANARY) - 200, 0) : text.find(CANARY) + 100])
    assert CANARY not in log.getvalue()
    assert ("ValueError" in log.getvalue()) is isinstance(asker, Failing)


async def test_the_requests_of_the_canary_are_decided(tmp_path: Path) -> None:
    """Else the test above would prove little."""
    watched = Watched(tmp_path, ScriptedAsker(ANSWERS))
    for path, document in DOCUMENTS.items():
        verdict = await watched.send(path, orjson.dumps(document))
        assert isinstance(verdict, Forward), verdict
        assert verdict.metadata["decision"] == "all"
        assert "trace" in verdict.metadata
        assert verdict.structs
