"""Whatever a client sends, it gets an answer or a refusal in the protocol's form, never a server error."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import ClientSession
from hypothesis import given, settings
from hypothesis import strategies as st

from router.runtime.model import load_model
from router.runtime.server import Server
from tests.support.artifacts import build_tiny_artifact
from tests.support.runtime_client import listen

WORDS = st.sampled_from(["law", "math", "code", "😀", "e\u0301", "[SEP]", "", " ", "x" * 300])
TEXT = st.lists(WORDS, max_size=40).map(" ".join) | st.text(max_size=20)
STATES = (
    TEXT | st.dictionaries(st.sampled_from(["request", "answer", "a"]), TEXT, max_size=3) | st.lists(TEXT, max_size=3)
)
DESCRIBED = st.none() | TEXT
KEYS = st.text(max_size=6)
EXTRAS = st.fixed_dictionaries(
    {},
    optional={
        "over": st.sampled_from(["request", "a", ["a", "answer"], [], 3]),
        "require_full_input": st.booleans(),
        "overflow": st.sampled_from(["window", "truncate", "other"]),
        "threshold": st.floats(-0.5, 1.5),
        "preset": st.sampled_from(["domains", "jailbreak", "none"]),
        "head": st.sampled_from(["router", "broad"]),
    },
)
QUESTIONS = st.one_of(
    st.fixed_dictionaries({"type": st.just("noul")}, optional={"instructions": TEXT}),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["choice", "set", "span", "noul"]), "instructions": TEXT},
        optional={"criteria": st.dictionaries(KEYS, DESCRIBED, max_size=4)},
    ),
    st.fixed_dictionaries(
        {"type": st.just("score"), "instructions": TEXT}, optional={"criteria": st.lists(TEXT, max_size=4)}
    ),
)
POSED = st.builds(lambda question, extras: question | extras, QUESTIONS, EXTRAS | st.just({}))
BODIES = st.fixed_dictionaries(
    {"state": STATES, "questions": st.dictionaries(st.text(max_size=4), POSED, max_size=4)},
    optional={"options": st.fixed_dictionaries({}, optional={"deadline_ms": st.sampled_from([0.001, 5000, -1])})},
)


@pytest.fixture(scope="module")
def post(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    model = load_model(str(build_tiny_artifact(tmp_path_factory.mktemp("tiny"), presets=True)), "cpu")
    server = Server()
    server.model = model
    listener = server.listener()
    with asyncio.Runner() as runner:

        async def start() -> ClientSession:
            return ClientSession(await listen(listener))

        client = runner.run(start())

        async def send(data: bytes, path: str, headers: dict[str, str]) -> tuple[int, dict[str, Any]]:
            async with client.post(path, data=data, headers=headers) as response:
                return response.status, await response.json()

        yield lambda data, path="/v1/systemone", **headers: runner.run(send(data, path, headers))
        runner.run(client.close())
        runner.run(listener.stop(1))
    model.close()


@given(body=BODIES)
@settings(max_examples=100, deadline=None)
def test_any_request_is_answered_or_refused(post: Any, body: dict[str, Any]) -> None:
    status, got = post(json.dumps(body).encode())
    assert status in (200, 400, 422)
    if status != 200:
        assert got["error"]["message"]
        assert got["detail"]
        return
    for name, question in body["questions"].items():
        answer = got["answers"].get(name)
        assert answer is not None or name in got["sets"]
        if answer is not None and "error" not in answer and question["type"] in ("choice", "score"):
            assert abs(sum(answer["probabilities"].values()) - 1) < 1e-6
            assert 0 <= answer["confidence"] <= 1


@given(data=st.binary(max_size=60) | st.text(max_size=40).map(str.encode))
@settings(max_examples=40, deadline=None)
def test_any_bytes_are_refused(post: Any, data: bytes) -> None:
    assert post(data)[0] in (400, 422)


SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.floats(allow_nan=False) | TEXT
NAMES = (
    "model state states questions input options id type instructions choices levels "
    "assets images role content value label criteria name part q"
)
FIELDS = st.sampled_from(NAMES.split())
KINDS = st.sampled_from(["noul", "choice", "score", "set", "span", "predicate", "message", "input_text", "input_image"])
JSON = st.recursive(
    SCALARS | KINDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELDS | TEXT, inner, max_size=5),
    max_leaves=25,
)
PATHS = st.sampled_from(["/v1/systemone", "/v1/systemone/batches", "/v1/decisions"])
TYPES = st.sampled_from(
    ["application/json", "text/plain", "multipart/form-data; boundary=b", "multipart/form-data", "x"]
)
ENCODINGS = st.sampled_from(["identity", "gzip", "zstd", "br", "gzip, gzip", ""])


@given(body=st.dictionaries(FIELDS, JSON, max_size=5) | JSON, path=PATHS)
@settings(max_examples=150, deadline=None)
def test_any_json_of_known_words_is_answered_or_refused(post: Any, body: Any, path: str) -> None:
    status, got = post(json.dumps(body).encode(), path)
    assert status in (200, 400, 404, 422)
    assert status == 200 or (got["error"]["message"] and got["detail"])


@given(data=st.binary(max_size=200), path=PATHS, kind=TYPES, encoding=ENCODINGS)
@settings(max_examples=80, deadline=None)
def test_any_bytes_of_any_kind_are_refused(post: Any, data: bytes, path: str, kind: str, encoding: str) -> None:
    status, got = post(data, path, **{"Content-Type": kind, "Content-Encoding": encoding})
    assert status in (400, 415, 422)
    assert got["error"]["code"]
