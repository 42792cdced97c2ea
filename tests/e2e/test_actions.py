"""What decisions do to requests, seen by the official SDKs in front and by the backends behind."""

from __future__ import annotations

import gzip
import hashlib
import urllib.request
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from tests.support.sdks import Sdks, connected
from tests.support.stack import MARK, Stack, running

CONFIG = (Path(__file__).parent / "actions.yaml").read_text()
CLOSED = "We are closed — “à demain” 😀."


@pytest.fixture(scope="module", params=["buffered", "streamed"])
def acting(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    streamed = "  router: {streamed_body: {enabled: true}}\n" if request.param == "streamed" else ""
    with running(tmp_path_factory.mktemp("actions"), CONFIG + streamed) as started:
        yield started


@pytest.fixture(scope="module")
def clients(acting: Stack) -> Iterator[Sdks]:
    with connected(acting) as found:
        yield found


class TestFastResponse:
    def told(self, headers: Mapping[str, str]) -> dict[str, str]:
        found = {name: value for name, value in headers.items() if name.startswith("x-vsr-")}
        return {name: value for name, value in found.items() if name != "x-vsr-selected-confidence"}

    TOLD: ClassVar = {
        "x-vsr-fast-response": "true",
        "x-vsr-response-path": "fast_response",
        "x-vsr-schema-version": "2",
        "x-vsr-selected-recipe": "closed",
        "x-vsr-selected-decision": "closed",
    }

    def test_chat(self, clients: Sdks) -> None:
        raw = clients.oai.chat.completions.with_raw_response.create(
            model="closed", messages=[{"role": "user", "content": "Hello?"}]
        )
        answer = raw.parse()
        assert (answer.model, answer.choices[0].message.content) == ("router", CLOSED)
        assert answer.choices[0].finish_reason == "stop"
        assert answer.usage is not None
        assert answer.usage.total_tokens == 0
        assert self.told(raw.headers) == self.TOLD

    def test_chat_streamed(self, clients: Sdks) -> None:
        raw = clients.oai.chat.completions.with_raw_response.create(
            model="closed",
            messages=[{"role": "user", "content": "Hello?"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        *chunks, last = list(raw.parse())
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == CLOSED
        assert chunks[-1].choices[0].finish_reason == "stop"
        assert last.usage is not None
        assert last.usage.total_tokens == 0
        assert self.told(raw.headers) == self.TOLD

    def test_chat_streamed_with_the_helper(self, clients: Sdks) -> None:
        with clients.oai.chat.completions.stream(
            model="closed", messages=[{"role": "user", "content": "Hello?"}]
        ) as stream:
            assert stream.get_final_completion().choices[0].message.content == CLOSED

    def test_responses(self, clients: Sdks) -> None:
        raw = clients.oai.responses.with_raw_response.create(model="closed", input="Hello?")
        answer = raw.parse()
        assert (answer.model, answer.output_text, answer.status) == ("router", CLOSED, "completed")
        assert answer.usage is not None
        assert answer.usage.total_tokens == 0
        assert self.told(raw.headers) == self.TOLD

    def test_responses_streamed(self, clients: Sdks) -> None:
        with clients.oai.responses.stream(model="closed", input="Hello?") as stream:
            events = list(stream)
            assert stream.get_final_response().output_text == CLOSED
        assert [event.type for event in events][-1] == "response.completed"

    def test_messages(self, clients: Sdks) -> None:
        raw = clients.claude.messages.with_raw_response.create(
            model="closed", max_tokens=8, messages=[{"role": "user", "content": "Hello?"}]
        )
        answer = raw.parse()
        block = answer.content[0]
        assert block.type == "text"
        assert (answer.model, block.text, answer.stop_reason) == ("router", CLOSED, "end_turn")
        assert answer.usage.output_tokens == 0
        assert self.told(raw.headers) == self.TOLD

    def test_messages_streamed(self, clients: Sdks) -> None:
        with clients.claude.messages.stream(
            model="closed", max_tokens=8, messages=[{"role": "user", "content": "Hello?"}]
        ) as stream:
            assert "".join(stream.text_stream) == CLOSED
            assert stream.get_final_message().stop_reason == "end_turn"
            assert self.told(stream.response.headers) == self.TOLD


PROMPT = rb'"Be kind.\n\"Always\"."'
CHANGED = {
    "openai": (
        "/v1/chat/completions",
        b'{ "model":"changed", "user":"u","max_tokens" : 99,"n":3, "min_p":1,'
        b'"messages":[ {"role":"user","content":"\\u00e4"}] }',
        b'{ "model":"chat","max_tokens" : 50,"n":1,'
        b'"messages":[{"role":"system","content":%s}, {"role":"user","content":"\\u00e4"}] }' % PROMPT,
    ),
    "responses": (
        "/v1/responses",
        b'{"model":"changed","input":"hi","max_output_tokens":50.0}',
        b'{"instructions":%s,"model":"responses","input":"hi","max_output_tokens":50.0}' % PROMPT,
    ),
    "anthropic": (
        "/v1/messages",
        b'{"model":"changed","max_tokens":64,"system":[{"type":"text","text":"A"}],'
        b'"messages":[{"role":"user","content":"hi"}]}',
        b'{"model":"messages","max_tokens":50,"system":[{"type":"text","text":%s},{"type":"text","text":"A"}],'
        b'"messages":[{"role":"user","content":"hi"}]}' % PROMPT,
    ),
}


class TestChanged:
    @pytest.mark.parametrize("backend", CHANGED)
    @pytest.mark.parametrize("compressed", [False, True])
    def test_the_backend_gets_exactly_the_edited_bytes(self, acting: Stack, backend: str, compressed: bool) -> None:
        path, body, expected = CHANGED[backend]
        mark = uuid.uuid4().hex
        headers = {
            "content-type": "application/json",
            MARK: mark,
            "x-tier": "gold",
            "x-tenant": "evil",
            "x-secret": "1",
        }
        if compressed:
            headers["content-encoding"] = "gzip"
        data = gzip.compress(body) if compressed else body
        request = urllib.request.Request(acting.base + path, data, headers)
        with urllib.request.urlopen(request) as answer:
            assert answer.headers["x-vsr-selected-decision"] == "changed"
        (received,) = acting.received(backend, mark)
        assert received.body_sha256 == hashlib.sha256(expected).hexdigest()
        assert [received.all(name) for name in ("x-tier", "x-team", "x-tenant", "x-secret")] == [
            ["gold"],
            ["blue"],
            ["acme"],
            [],
        ]


THINKING = {
    "openai": (
        "/v1/chat/completions",
        b'{"model":"thinking", "messages":[{"role":"user","content":"hi"}]}',
        b'{"reasoning_effort":"none","model":"sql-adapter", "messages":[{"role":"user","content":"hi"}]}',
    ),
    "responses": (
        "/v1/responses",
        b'{"model":"thinking","reasoning":{"summary":"auto"},"input":"hi"}',
        b'{"model":"responses","reasoning":{"effort":"high","summary":"auto"},"input":"hi"}',
    ),
    "anthropic": (
        "/v1/messages",
        b'{"model":"thinking","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}',
        b'{"thinking":{"type":"adaptive"},"output_config":{"effort":"low"},"model":"messages","max_tokens":9,'
        b'"messages":[{"role":"user","content":"hi"}]}',
    ),
}


class TestCandidates:
    @pytest.mark.parametrize("backend", THINKING)
    def test_each_format_has_its_own_place_for_thinking(self, acting: Stack, backend: str) -> None:
        path, body, expected = THINKING[backend]
        mark = uuid.uuid4().hex
        headers = {"content-type": "application/json", MARK: mark}
        with urllib.request.urlopen(urllib.request.Request(acting.base + path, body, headers)) as answer:
            assert answer.headers["x-vsr-selected-algorithm"] == "static"
        (received,) = acting.received(backend, mark)
        assert received.body_sha256 == hashlib.sha256(expected).hexdigest()

    def test_requests_are_shared_out_by_weight(self, clients: Sdks) -> None:
        found: Counter[str] = Counter()
        for number in range(60):
            raw = clients.oai.chat.completions.with_raw_response.create(
                model="weighted", messages=[{"role": "user", "content": f"Question {number}"}]
            )
            assert raw.headers["x-vsr-selected-algorithm"] == "weighted"
            assert raw.headers["x-vsr-selected-model"] == raw.parse().model
            found[raw.parse().model] += 1
        assert found.keys() == {"chat", "chat-b"}
        assert found["chat"] > found["chat-b"]

    def test_a_session_keeps_its_model(self, clients: Sdks) -> None:
        for session in range(6):
            headers = {"x-session-id": f"{session}-{uuid.uuid4().hex}"}
            models = {
                clients.oai.chat.completions.create(
                    model="weighted",
                    messages=[{"role": "user", "content": f"Question {number}"}],
                    extra_headers=headers,
                ).model
                for number in range(5)
            }
            assert len(models) == 1
