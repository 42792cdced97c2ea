"""Models that a listener's clients may not name: refused in their format, and not listed."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from router.config.offers import LISTENER_HEADER
from router.explaining.redeciding import Redecider
from router.observe import Metrics
from router.pipeline import Pipeline
from router.questions import NoulAnswer
from router.verdict import Forward
from router.wire.http import Head, Reply
from tests.support.plans import PLAIN, ScriptedAsker, generation_of, plan_of

LISTENERS = """\
listeners:
  - {name: public, address: 127.0.0.1, port: 8801, models: [auto, fixed]}
  - {name: inside, address: 127.0.0.1, port: 8802}
  - {name: only, address: 127.0.0.1, port: 8803, models: [fixed, claude]}
"""
TEXT = PLAIN.replace("listeners: [{name: public, address: 127.0.0.1, port: 8801}]\n", LISTENERS)
ONE = PLAIN.replace("port: 8801}", "port: 8801, models: [auto, fixed]}")
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"


def made(text: str = TEXT) -> tuple[Pipeline, ScriptedAsker, Metrics]:
    asker, metrics = ScriptedAsker({"is_code": NoulAnswer(0.9)}), Metrics()
    return Pipeline(generation_of(plan_of(text), asker), metrics), asker, metrics


def head(listener: str | None, path: str = CHAT, method: str = "POST") -> Head:
    return Head(method, path, {} if listener is None else {LISTENER_HEADER: f"127.0.0.1:{listener}"})


def body(model: str | None) -> bytes:
    named: dict[str, Any] = {} if model is None else {"model": model}
    return orjson.dumps({**named, "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]})


async def came(listener: str | None, model: str | None, *, path: str = CHAT, text: str = TEXT) -> str:
    """The model that a request goes to, or the code of the error."""
    verdict = await made(text)[0].decided(head(listener, path), body(model))
    if isinstance(verdict, Forward):
        return verdict.model
    error = orjson.loads(verdict.body)["error"]
    assert verdict.status == (403 if "permission" in error["type"] or error.get("code") == "model_not_allowed" else 400)
    return str(error.get("code") or error["type"])


@pytest.mark.parametrize(
    ("listener", "model", "result"),
    [
        ("8801", "auto", "coder"),
        ("8801", "fixed", "general"),
        ("8801", None, "coder"),
        ("8801", "general", "model_not_allowed"),
        ("8801", "strict", "model_not_allowed"),
        ("8801", "nowhere", "model_not_allowed"),
        ("8802", "general", "general"),
        ("8802", "auto", "coder"),
        ("8802", "nowhere", "model_not_found"),
        ("8803", "fixed", "general"),
        ("8803", "auto", "model_not_allowed"),
        ("8803", None, "model_required"),
        (None, "fixed", "general"),
        (None, "auto", "model_not_allowed"),
        (None, None, "model_required"),
        ("1", "general", "model_not_allowed"),
    ],
)
async def test_what_a_name_comes_to(listener: str | None, model: str | None, result: str) -> None:
    assert await came(listener, model) == result


async def test_one_listener_needs_no_telling() -> None:
    assert await came(None, "auto", text=ONE) == "coder"
    assert await came(None, "general", text=ONE) == "model_not_allowed"


async def test_in_the_format_of_messages() -> None:
    assert await came("8801", "claude", path=MESSAGES) == "permission_error"
    assert await came("8803", "claude", path=MESSAGES) == "claude"


async def test_a_refused_name_is_counted_and_asks_nothing() -> None:
    pipeline, asker, metrics = made()
    await pipeline.decided(head("8801"), body("general"))
    assert 'llm_request_errors_total{reason="model_not_allowed"} 1.0' in metrics.render().decode()
    assert asker.asked == []


@pytest.mark.parametrize(
    ("listener", "listed"),
    [
        ("8801", ["auto", "fixed"]),
        ("8802", ["auto", "strict", "fixed", "coder", "general", "claude"]),
        ("8803", ["fixed", "claude"]),
        (None, ["fixed"]),
    ],
)
def test_a_listener_lists_what_it_offers(listener: str | None, listed: list[str]) -> None:
    reply = made()[0].on_head(head(listener, "/v1/models", "GET"))
    assert isinstance(reply, Reply)
    assert [model["id"] for model in orjson.loads(reply.body)["data"]] == listed


def record(model: str | None) -> dict[str, Any]:
    return {
        "id": "r",
        "format": "chat",
        "original_model": model,
        "answers": {},
        "decision": None,
        "selected_model": model,
        "terminal_reason": None,
    }


@pytest.mark.parametrize(
    ("model", "text", "becomes"),
    [
        ("general", ONE, "model_not_allowed"),
        ("general", TEXT.replace("port: 8802", "port: 8802, models: [auto]"), "model_not_allowed"),
        (None, TEXT.replace("[auto, fixed]", "[strict]").replace("8802", "8802, models: [coder]"), "model_required"),
    ],
)
def test_a_record_of_a_name_that_nobody_may_use_any_more(model: str | None, text: str, becomes: str) -> None:
    found = Redecider(plan_of(text)).difference([record(model)])
    assert [new.error for _, new in found.changed] == [becomes]


def test_a_record_does_not_say_by_which_listener_it_came() -> None:
    found = Redecider(plan_of(TEXT)).difference([record("general")])
    assert found.undecided.count == 1
    assert found.missing == {"listeners[].models": 1}
