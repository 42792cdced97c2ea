"""Beside `/v1/systemone` itself: batches, the other dialect, forms, keys, names, and whole requests that fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import zstandard

from router.questions import NoulAnswer
from router.runtime.asking import Answered
from router.runtime.http import connection
from router.runtime.keys import Keys
from router.runtime.listing import Names
from router.runtime.model import Model, Outcome
from router.runtime.server import Server
from tests.support.runtime_client import NOUL, PATH, UNKNOWN, Client, post, serving


@pytest.fixture
async def client(tiny_model: Model) -> AsyncIterator[Client]:
    server = Server(Names("served", ("other-name",)))
    server.model = tiny_model
    async with serving(server) as client:
        yield client


BATCH = {"states": [{"id": "b", "state": "math"}, {"id": "a", "state": "law"}], "questions": {"n": NOUL}}


async def test_a_batch_is_answered_in_the_order_of_its_states(client: Client) -> None:
    async with client.post(f"{PATH}/batches", json=BATCH | {"options": {"return_meta": True}, "seed": 1}) as response:
        got = await response.json()
    assert (response.status, got["model"], got["count"]) == (200, "served", 2)
    assert [result["id"] for result in got["results"]] == ["b", "a"]
    first, second = (result["answers"]["n"]["noul"] for result in got["results"])
    assert first > 0.9
    assert second < 0.1
    assert got["usage"]["input_tokens"] == sum(result["usage"]["input_tokens"] for result in got["results"])
    assert got["meta"]["ignored_fields"] == ["seed"]


async def test_a_batch_without_any_question_for_this_model_says_so_once(client: Client) -> None:
    async with client.post(f"{PATH}/batches", json=BATCH | {"questions": {"p": UNKNOWN}}) as response:
        got = await response.json()
    assert response.status == 422
    assert [problem["loc"] for problem in got["detail"]] == [["body", "questions", "p"]]


async def test_decisions_are_told_apart_by_the_body(client: Client) -> None:
    asked = {"input": "math", "questions": [{"type": "predicate", "instructions": "math", "name": "n"}]}
    async with client.post("/v1/decisions", json=asked) as response:
        got = await response.json()
    assert (response.status, got["answers"][0]["type"], got["answers"][0]["name"]) == (200, "predicate", "n")
    status, got = await post(client, asked)
    assert (status, got["detail"][0]["loc"]) == (422, ["body", "state"])
    async with client.post("/v1/decisions", json=asked | {"input": 3}) as response:
        got = await response.json()
    assert (response.status, got["error"]["param"]) == (422, "input")


async def test_a_deadline_fails_an_openai_request_as_a_whole(client: Client) -> None:
    asked = {"input": "math", "questions": [{"type": "predicate", "instructions": "math"}]}
    async with client.post("/v1/decisions", json=asked | {"options": {"deadline_ms": 0.000001}}) as response:
        got = await response.json()
    assert (response.status, got["code"]) == (504, "deadline_exceeded")


async def test_a_failed_question_fails_the_request_of_a_client_that_could_not_read_it(client: Client) -> None:
    body = {"state": "x", "questions": {"n": NOUL, "p": UNKNOWN}}
    status, got = await post(client, body, headers={"X-TypeSafe-SDK": "python/0.7.5"})
    assert (status, got["detail"][0]["loc"]) == (422, ["body", "questions", "p"])
    status, got = await post(
        client, body | {"options": {"deadline_ms": 0.000001}}, headers={"X-TypeSafe-SDK": "python/0.7.5"}
    )
    assert (status, got["code"]) == (504, "deadline_exceeded")


async def test_numbers_that_are_none_never_reach_a_client(
    client: Client, tiny_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(blocks: Any, *_: Any) -> Any:
        return [Outcome({"n": Answered(NoulAnswer(float("nan")), True)}, 1) for _ in blocks]

    monkeypatch.setattr(tiny_model, "_answer", broken)
    status, got = await post(client, {"state": "x", "questions": {"n": NOUL}})
    assert (status, got["answers"]["n"]["error"]) == (200, "invalid_model_output")


async def test_a_form_is_read_and_what_is_no_text_is_refused(client: Client) -> None:
    asked = {"state": "see <i>", "questions": {"n": NOUL}}
    headers = {"Content-Type": 'multipart/form-data; boundary="b"'}

    def form(request: Any, *assets: str) -> bytes:
        parts = [("request", json.dumps(request)), *((name, "x") for name in assets)]
        pieces = (f'--b\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n' for name, text in parts)
        return ("".join(pieces) + "--b--\r\n").encode()

    assert (await post(client, form(asked), headers=headers))[0] == 200
    status, got = await post(client, form(asked, "asset-0"), headers=headers)
    assert (status, got["code"]) == (400, "unreferenced_asset")
    status, got = await post(client, form(asked | {"assets": {"<i>": {"part": "asset-0"}}}, "asset-0"), headers=headers)
    assert (status, got["code"], got["detail"]) == (400, "unsupported_capability", "served lacks image (card)")
    status, got = await post(client, b"--b", headers=headers)
    assert (status, got["error"]["code"]) == (400, "invalid_request")


async def test_zstd_bodies(client: Client) -> None:
    plain = json.dumps({"state": "math " * 500, "questions": {"n": NOUL}}).encode()
    packed = zstandard.ZstdCompressor().compress(plain)
    assert (await post(client, packed, headers={"Content-Encoding": "zstd"}))[0] == 200
    assert (await post(client, packed[:-5], headers={"Content-Encoding": "zstd"}))[0] == 400


async def test_a_body_that_does_not_arrive_is_given_up(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "UPLOAD_S", 0.01)
    forever = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b'{"state": '
        await forever.wait()

    async with client.post(PATH, data=body()) as response:
        got = await response.json()
        assert (response.status, got["code"]) == (408, "request_timeout")
    forever.set()


async def test_every_exchange_has_an_id_of_its_own(client: Client) -> None:
    ids = set()
    for method, path in (("POST", PATH), ("GET", "/health"), ("GET", "/nope"), ("GET", "/openapi.json")):
        async with client.request(method, path) as response:
            ids.add(response.headers["x-typesafe-request-id"])
    assert len(ids) == 4


async def test_only_who_has_a_key_is_answered(tiny_model: Model) -> None:
    server = Server(keys=Keys(["k"]))
    server.model = tiny_model
    body = {"state": "x", "questions": {"n": NOUL}}
    async with serving(server) as client:
        status, got = await post(client, body)
        assert (status, got["detail"]["error_type"], got["code"]) == (403, "authentication_error", "missing_api_key")
        async with client.post(PATH, json=body, headers={"Authorization": "Bearer x"}) as response:
            assert (response.status, response.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert (await post(client, body, headers={"Authorization": "Bearer k"}))[0] == 200
        assert (await post(client, body, headers={"Api-Key": "k"}))[0] == 200
        for path, expected in (("/health", 200), ("/health/live", 200), ("/openapi.json", 200), ("/metrics", 403)):
            async with client.get(path) as response:
                assert response.status == expected
        async with client.get("/nope") as response:
            assert response.status == 403


async def test_a_model_is_found_by_any_of_its_names(client: Client) -> None:
    for name, expected in (("served", 200), ("other-name", 200), ("jev-latest", 200), ("gpt-6-luna", 404)):
        async with client.get(f"/v1/models/{name}") as response:
            got = await response.json()
            assert response.status == expected
            assert expected == 404 or (got["id"], got["aliases"]) == ("served", ["jev-latest", "other-name"])
    async with client.get("/v1/systemone/models") as response:
        assert (await response.json())["data"] == [
            {"id": "served", "object": "model", "api": "systemone", "routing": False}
        ]
