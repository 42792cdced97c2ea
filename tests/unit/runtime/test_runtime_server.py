from __future__ import annotations

import asyncio
import gzip
import json
import logging
import re
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from router.runtime.bounds import Bounds
from router.runtime.listing import Names
from router.runtime.model import Model, load_model
from router.runtime.server import Server
from tests.support.runtime_client import NOUL, PATH, Client, post, serving


@pytest.fixture
async def client(tiny_model: Model) -> AsyncIterator[Client]:
    server = Server(Names("served", ("other-name",)))
    server.model = tiny_model
    async with serving(server) as client:
        yield client


async def test_an_answer_has_the_whole_envelope(client: Client) -> None:
    body = {
        "state": "math and law",
        "questions": {
            "n": NOUL,
            "s": {"type": "set", "instructions": "which", "labels": [{"key": "law"}]},
            "p": {"type": "span", "instructions": "where", "labels": [{"key": "law"}]},
        },
        "states": {"other": {"state": "law", "questions": {"n": NOUL}}},
        "options": {"return_meta": True},
    }
    status, got = await post(client, body)
    assert status == 200
    assert got["model"] == "served"
    assert set(got["answers"]) == {"n", "s.law", "p"}
    assert got["sets"]["s"]["selected"] == ["law"]
    assert got["spans"]["p"][0]["text"] == "law"
    assert got["thresholds"] == {"s": 0.5, "p": 0.5}
    assert got["usage"]["output_tokens"] == 0
    assert got["states"]["other"]["answers"]["n"]["noul"] < 0.01
    assert got["states"]["other"]["usage"]["input_tokens"] > 0
    assert len(got["meta"]["model_sha256"]) == 64
    assert got["meta"]["device"] == "cpu"


async def test_meta_and_extras_come_only_when_there_are_any(client: Client) -> None:
    _, got = await post(client, {"state": "x", "questions": {"n": NOUL}})
    assert set(got) == {"model", "answers", "usage"}


@pytest.mark.parametrize("model", [None, "served", "tiny", "jev-latest", "other-name"])
async def test_names_that_a_lone_model_answers_to(client: Client, model: str | None) -> None:
    status, _ = await post(client, {"model": model, "state": "x", "questions": {"n": NOUL}})
    assert status == 200


async def test_another_model_is_not_found(client: Client) -> None:
    status, got = await post(client, {"model": "other", "state": "x", "questions": {"n": NOUL}})
    assert (status, got["code"], got["error"]["code"]) == (404, "model_not_found", "model_not_found")
    assert isinstance(got["detail"], str)


async def test_both_paths_answer(client: Client) -> None:
    async with client.post("/v1/decisions", json={"state": "x", "questions": {"n": NOUL}}) as response:
        assert response.status == 200
        assert response.headers["Cache-Control"] == "no-store"
        assert re.fullmatch(
            r"queue;dur=[\d.]+, compute;dur=[\d.]+, total;dur=[\d.]+", response.headers["Server-Timing"]
        )


@pytest.mark.parametrize("model", ["other", "x" * 10_000])
async def test_errors_never_repeat_text(client: Client, model: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "SECRET-41"  # noqa: S105
    for body in (
        {"model": model, "state": secret, "questions": {"n": NOUL | {"instructions": secret}}},
        {"state": secret, "questions": {"n": {"type": "noul", "instructions": secret, "preset": "none"}}},
        {"state": secret, "questions": {"n": {"type": "choice", "instructions": secret, "criteria": {secret: None}}}},
    ):
        status, got = await post(client, body)
        assert status in (404, 422)
        assert secret not in json.dumps(got)
    assert secret not in caplog.text
    async with client.get("/metrics") as response:
        assert secret not in await response.text()


async def test_invalid_bodies_have_both_error_forms(client: Client) -> None:
    status, got = await post(client, {"state": "x", "questions": {"n": {"type": "noul"}}})
    assert status == 422
    assert got["detail"] == [
        {"loc": ["body", "questions", "n", "instructions"], "msg": "Field required", "type": "missing"}
    ]
    assert got["error"]["code"] == "invalid_request"


async def test_a_refusal_is_no_larger_than_what_it_refuses(client: Client) -> None:
    question = {"type": "noul", "instructions": "x"} | {f"k{number}": 1 for number in range(5000)}
    status, got = await post(client, {"state": "x", "questions": {"n": question}})
    assert (status, len(got["detail"])) == (422, 100)
    assert got["detail"][0]["loc"] == ["body", "questions", "n", "k0"]


@pytest.mark.parametrize("data", [b"{", b'{"state": "x", "state": "y"}', b"\xff"])
async def test_what_is_not_json_is_400(client: Client, data: bytes) -> None:
    status, got = await post(client, data)
    assert (status, got["error"]["code"]) == (400, "invalid_request")


async def test_a_question_that_fails_leaves_the_others(client: Client) -> None:
    questions = {"n": NOUL, "p": {"type": "noul", "preset": "unheard_of"}}
    status, got = await post(client, {"state": "x", "questions": questions})
    assert status == 200
    assert got["answers"]["p"] == {
        "type": "noul",
        "error": "invalid_question",
        "message": "this model does not define that preset",
    }


async def test_a_request_without_any_question_for_this_model_is_invalid(client: Client) -> None:
    status, got = await post(client, {"state": "x", "questions": {"p": {"type": "noul", "preset": "unheard_of"}}})
    assert (status, got["detail"][0]["loc"]) == (422, ["body", "questions", "p"])


async def test_compressed_bodies(client: Client) -> None:
    plain = json.dumps({"state": "math", "questions": {"n": NOUL}}).encode()
    status, _ = await post(client, gzip.compress(plain), headers={"Content-Encoding": "gzip"})
    assert status == 200
    status, got = await post(client, plain, headers={"Content-Encoding": "br"})
    assert (status, got["code"]) == (415, "unsupported_encoding")
    for damaged in (plain, gzip.compress(plain)[:-4], b""):
        status, got = await post(client, damaged, headers={"Content-Encoding": "gzip"})
        assert (status, got["code"]) == (400, "invalid_request")
        assert "cut short" in got["detail"]


async def test_bodies_over_the_limit(tiny_model: Model) -> None:
    server = Server(max_body_bytes=1000)
    server.model = tiny_model
    async with serving(server) as client:
        big = json.dumps({"state": "x" * 2000, "questions": {"n": NOUL}}).encode()
        assert (await post(client, big))[0] == 413
        assert (await post(client, gzip.compress(big), headers={"Content-Encoding": "gzip"}))[0] == 413


async def test_a_deadline_that_has_passed_fails_the_questions(client: Client) -> None:
    body = {"state": "x", "questions": {"n": NOUL}, "options": {"deadline_ms": 0.000001}}
    status, got = await post(client, body)
    assert (status, got["answers"]["n"]["error"]) == (200, "deadline_exceeded")


async def test_a_deadline_leaves_what_was_answered_before_it(client: Client, tiny_model: Model) -> None:
    scheduler, late = tiny_model._scheduler, threading.Event()
    run = scheduler._run

    def once(rows: Any) -> Any:
        late.set()
        return run(rows)

    scheduler._run = once
    scheduler._clock = lambda: time.monotonic() + (1000 if late.is_set() else 0)
    states = {name: {"state": state, "questions": {"n": NOUL}} for name, state in (("a", "x"), ("b", "law " * 90))}
    status, got = await post(client, {"states": states, "options": {"deadline_ms": 60_000}})
    assert (status, set(got["states"]["a"]["answers"]["n"])) == (200, {"type", "noul"})
    assert got["states"]["b"]["answers"]["n"]["error"] == "deadline_exceeded"
    assert got["states"]["b"]["usage"]["input_tokens"] < 20, "what was not read is not counted"
    late.clear()
    assert (await post(client, {"states": states}, headers={"X-TypeSafe-SDK": "1"}))[0] == 200
    status, got = await post(
        client, {"states": states, "options": {"deadline_ms": 60_000}}, headers={"X-TypeSafe-SDK": "1"}
    )
    assert (status, got["code"]) == (504, "deadline_exceeded")


async def test_overload_is_refused_at_once_with_retry_after(tiny_directory: Path) -> None:
    model = load_model(str(tiny_directory), "cpu")
    model._bounds = Bounds(requests=0)
    server = Server()
    server.model = model
    try:
        async with (
            serving(server) as client,
            client.post(PATH, json={"state": "x", "questions": {"n": NOUL}}) as response,
        ):
            got = await response.json()
            assert (response.status, got["code"], got["error"]["code"]) == (429, "overloaded", "overloaded")
            assert response.headers["Retry-After"] == "1"
    finally:
        model.close()


async def test_nothing_is_answered_before_the_model_is_ready() -> None:
    async with serving(Server()) as client:
        status, got = await post(client, {"state": "x", "questions": {"n": NOUL}})
        assert (status, got["code"]) == (503, "not_ready")
        for path, expected in (("/health", 503), ("/health/live", 200), ("/v1/models", 200), ("/metrics", 200)):
            async with client.get(path) as response:
                assert response.status == expected


async def test_models_are_listed_in_both_shapes(client: Client) -> None:
    async with client.get("/v1/models") as response:
        got = await response.json()
    (card,), (short,) = got["data"], got["models"]
    assert (card["id"], card["object"], short["name"]) == ("served", "model", "served")
    assert card["question_types"] == ["choice", "noul", "score", "set", "span"]
    assert {"name": "domains", "type": "choice", "labels": ["computer science", "math", "law", "other"]} in card[
        "presets"
    ]
    assert short["release_date"] == "1970-01-01"
    assert card["ready"] is True


@pytest.mark.parametrize(("method", "path", "status"), [("GET", PATH, 405), ("POST", "/nope", 404)])
async def test_other_requests_get_errors_in_our_form(client: Client, method: str, path: str, status: int) -> None:
    async with client.request(method, path) as response:
        got = await response.json()
        assert response.status == status
        assert got["error"]["code"]


async def test_an_internal_error_tells_its_place_and_no_text(
    client: Client, tiny_model: Model, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> Any:
        raise KeyError("SECRET-41")

    monkeypatch.setattr(tiny_model, "_plan", broken)
    status, got = await post(client, {"state": "x", "questions": {"n": NOUL}})
    assert (status, got["code"]) == (500, "internal_error")
    assert "KeyError at test_runtime_server.py:" in caplog.text
    assert "SECRET-41" not in caplog.text + json.dumps(got)


async def test_a_failing_graph_fails_the_questions_and_the_next_request_is_fine(
    client: Client, tiny_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Any) -> Any:
        raise RuntimeError("out of memory")

    body = {"state": "x", "questions": {"n": NOUL}}
    with monkeypatch.context() as patch:
        patch.setattr(tiny_model._scheduler, "_run", broken)
        status, got = await post(client, body)
        assert (status, got["answers"]["n"]["error"]) == (200, "unavailable")
    assert "noul" in (await post(client, body))[1]["answers"]["n"]


async def test_metrics_count_by_closed_labels(client: Client) -> None:
    await post(client, {"state": "x", "questions": {"n": NOUL, "p": {"type": "noul", "preset": "none"}}})
    async with client.get("/metrics") as response:
        text = await response.text()
    assert 'vllm_srun_requests_total{status="200"} 1.0' in text
    assert 'vllm_srun_questions_total{outcome="answered",type="noul"} 1.0' in text
    assert 'vllm_srun_questions_total{outcome="invalid_question",type="noul"} 1.0' in text


async def test_metrics_tell_of_batches_padding_drops_and_known_texts(client: Client) -> None:
    body = {"state": "law", "questions": {"n": NOUL}}
    assert (await post(client, body))[0] == (await post(client, body))[0] == 200
    await asyncio.sleep(0.05)  # batches are told of once the worker rests
    text = await (await client.get("/metrics")).text()
    for line in (
        'vllm_srun_text_lookups_total{outcome="hit"} 2.0',
        'vllm_srun_text_lookups_total{outcome="miss"} 2.0',
        "vllm_srun_queued_tokens 0.0",
        "vllm_srun_queue_depth 0.0",
        'vllm_srun_tokens_total{kind="padding"} ',
        'vllm_srun_dropped_total{reason="deadline"} 0.0',
        'vllm_srun_dropped_total{reason="refused"} 0.0',
    ):
        assert line in text
    assert "vllm_srun_batch_tokens_bucket" in text


async def test_answers_do_not_depend_on_what_else_is_asked_at_once(client: Client) -> None:
    def body(index: int) -> dict[str, Any]:
        text = "math " * (index % 3) + "law filler " * (index * 7 % 40)
        return {"state": text, "questions": {"n": NOUL, "c": NOUL | {"instructions": "law " * (index % 5 + 1)}}}

    alone = [(await post(client, body(index)))[1]["answers"] for index in range(24)]
    together = await asyncio.gather(*(post(client, body(index)) for index in range(24)))
    for before, (status, after) in zip(alone, together, strict=True):
        assert status == 200
        assert {k: v["noul"] for k, v in after["answers"].items()} == pytest.approx(
            {k: v["noul"] for k, v in before.items()}, abs=1e-4
        )


async def test_a_long_state_is_tokenised_off_the_loop_with_the_same_answer(client: Client) -> None:
    _, short = await post(client, {"state": "math", "questions": {"n": NOUL}})
    _, long = await post(client, {"state": "math" + " " * 5000, "questions": {"n": NOUL}})
    assert long["answers"] == short["answers"]


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that another thread or the server does."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def test_a_client_that_leaves_costs_nothing(
    client: Client, tiny_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[int] = []
    held, running = threading.Event(), threading.Event()
    run = tiny_model._scheduler._run

    def slow(rows: Any) -> Any:
        batches.append(len(rows))
        running.set()
        assert held.wait(10)
        return run(rows)

    monkeypatch.setattr(tiny_model._scheduler, "_run", slow)
    body = {"state": "math", "questions": {"n": NOUL}}
    first = asyncio.create_task(post(client, body))
    assert await asyncio.to_thread(running.wait, 10)
    second = asyncio.create_task(post(client, body))
    await until(lambda: tiny_model._scheduler.depth == 2)
    second.cancel()
    jobs = tiny_model._scheduler._jobs
    await until(jobs[-1].future.cancelled)
    held.set()
    assert (await first)[0] == 200
    status, _ = await post(client, body)
    assert status == 200
    assert batches == [1, 1], "the states of the first and the last request"
