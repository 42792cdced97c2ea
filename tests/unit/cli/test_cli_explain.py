"""`pointsman explain`: the picture, the JSON, and models that cannot be asked."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from router.cli import main
from router.cli.pictures import draw
from router.deciding.engine import prepare
from router.explaining.explanation import explain
from router.explaining.notes import Notes
from router.explaining.posed import pose
from router.observe import Metrics
from router.pipeline import Pipeline
from router.questions import Answer, NoulAnswer, Unknown, UnknownReason
from tests.support.plans import PLAIN, ScriptedAsker, generation_of, plan_of

REMOTE = """\
version: v0.5
listeners: [{name: public, address: 127.0.0.1, port: 8801}]
providers:
  models: [{name: coder, backend_refs: [{endpoint: "http://127.0.0.1:9101/v1"}]}]
recipes:
  - name: ask
    signals:
      systemone:
        - {name: is_code, deployment: far, question: {type: noul, instructions: Is this code?}}
    decisions:
      - name: code
        rules: {operator: AND, conditions: [{type: systemone, name: is_code}]}
        modelRefs: [{model: coder}]
      - {name: rest, rules: {}, modelRefs: [{model: coder}]}
entrypoints: [{model_names: [auto], recipe: ask}]
global:
  model_catalog:
    deployments:
      far: {provider: systemone, endpoint: "http://127.0.0.1:9/v1/systemone", model: m<key>}
"""
YES = NoulAnswer(0.9)
KEY = ", auth: {api_key_env: POINTSMAN_TEST_NO_KEY}"


async def picture(model: str = "auto", answer: Answer = YES, text: str = PLAIN) -> str:
    generation = generation_of(plan_of(text), ScriptedAsker({"is_code": answer}))
    notes, posed = Notes(), pose(json.dumps({"model": model, "text": "hello [bold]"}).encode())
    await Pipeline(generation, Metrics()).decided(posed.head, posed.body, notes=notes)
    compiled = prepare(generation.plan.recipes[notes.recipe]) if notes.recipe else None
    drawn = io.StringIO()
    draw(explain(generation.plan, compiled, notes), drawn)
    return drawn.getvalue()


async def test_the_picture_shows_rules_and_trees() -> None:
    shown = await picture()
    assert "is_code" in shown
    assert "≥ 0.7" in shown
    assert "code  ✔ true  confidence 0.9000  ◀ selected" in shown
    assert "systemone is_code  ✔ true  0.900" in shown
    assert "auto → recipe ask → code → coder" in shown
    assert "hello" not in shown


async def test_the_picture_of_an_unknown() -> None:
    shown = await picture("strict", Unknown(UnknownReason.TIMEOUT))
    assert "code  ? unknown  on_unknown: fail_request  fails the request" in shown
    assert "systemone is_code  ? unknown  timeout" in shown
    assert "nowhere (decision_unresolved)" in shown


async def test_the_picture_of_a_model_by_its_name() -> None:
    assert (await picture("general")).startswith("general → no recipe → no decision → general")


@pytest.mark.parametrize("key", ["", KEY])
def test_a_model_that_cannot_be_asked_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.delenv("POINTSMAN_TEST_NO_KEY", raising=False)
    config, request = tmp_path / "c.yaml", tmp_path / "r.json"
    config.write_text(REMOTE.replace("<key>", key))
    request.write_text('{"model": "auto", "messages": [{"role": "user", "content": "hello"}]}')
    assert main(["explain", str(config), str(request), "--json", "--text"]) == 0
    out, err = capsys.readouterr()
    body = json.loads(out)
    assert body["signal_errors"] == {"systemone:is_code": "decision_unavailable"}
    assert [trace["state"] for trace in body["eval_trace"]] == ["unknown", "true"]
    assert body["routing_decision"] == "rest"
    assert body["original_text"] == "hello"
    assert ("environment variable POINTSMAN_TEST_NO_KEY" in err) == bool(key)


@pytest.mark.parametrize(
    ("request_text", "message"),
    [("{", "r.json: "), ('{"model": "auto", "messages": 3}', "r.json: "), (None, "cannot be read: No such file")],
)
def test_a_request_that_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], request_text: str | None, message: str
) -> None:
    config, request = tmp_path / "c.yaml", tmp_path / "r.json"
    config.write_text(REMOTE.replace("<key>", ""))
    if request_text is not None:
        request.write_text(request_text)
    assert main(["explain", str(config), str(request)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
