"""A router that has taken on all it may: more is refused from its headers, and SDKs come back by themselves."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import anthropic
import openai
import pytest

from tests.support.stack import Stack, eventually, running
from tests.support.traffic import ThreadedModel, ask_once, fake_model

BOUNDS = (
    "  router: {admission: {max_requests: 2}}\n"
    "  model_catalog:\n    on_signal_overload: {retry_after_seconds: 1}\n    deployments:\n"
)
CONFIG = (Path(__file__).parent / "chaos.yaml").read_text().replace("  model_catalog:\n    deployments:\n", BOUNDS)
REFUSED = 'pointsman_admission_refused_total{bound="requests"}'
TAKEN_ON = "pointsman_admission_requests "


@pytest.fixture(scope="module")
def model() -> Iterator[ThreadedModel]:
    with fake_model() as started:
        started.fake.answer("Is this code?", 0.95)
        yield started


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, model: ThreadedModel) -> Iterator[Stack]:
    template = CONFIG.replace("<elsewhere>", model.fake.endpoint)
    with running(tmp_path_factory.mktemp("admission"), template, only=["openai"]) as started:
        yield started


NUMBERS = itertools.count()
"""For texts that no answer is kept of."""


@pytest.fixture
def full(stack: Stack, model: ThreadedModel) -> Iterator[None]:
    """Two requests wait for the decision model, which does not answer until the test lets it."""
    model.call(model.fake.hold)
    names = [f"waits-{next(NUMBERS)}" for _ in range(2)]
    port = stack.ports["listener"]
    with ThreadPoolExecutor(2) as threads:
        waiting = [threads.submit(ask_once, port, name, model="attached", text=name) for name in names]
        try:
            eventually(lambda: stack.metric(TAKEN_ON) == 2, "two requests are taken on", within=5)
            yield
        finally:
            model.call(model.fake.release)
        assert [each.result().status for each in waiting] == [200, 200]
    eventually(lambda: stack.metric(TAKEN_ON) == 0, "nothing is taken on any more")


@pytest.mark.usefixtures("full")
def test_the_sdks_are_told_to_come_back(stack: Stack) -> None:
    with openai.OpenAI(base_url=stack.base + "/v1", api_key="k", max_retries=0) as oai:
        with pytest.raises(openai.RateLimitError) as raised:
            oai.chat.completions.create(model="attached", messages=[{"role": "user", "content": "hi"}], stream=True)
        assert (raised.value.code, raised.value.response.headers["retry-after"]) == ("overloaded", "1")
        assert raised.value.response.headers["x-vsr-warnings"] == "guard_overloaded"
        with pytest.raises(openai.RateLimitError):
            oai.responses.create(model="attached", input="hi")
    with (
        anthropic.Anthropic(base_url=stack.base, api_key="k", max_retries=0) as claude,
        pytest.raises(anthropic.APIStatusError) as overloaded,
    ):
        claude.messages.create(model="attached", max_tokens=9, messages=[{"role": "user", "content": "hi"}])
    assert overloaded.value.status_code == 529
    assert overloaded.value.response.headers["retry-after"] == "1"


@pytest.mark.usefixtures("full")
def test_an_sdk_recovers_by_itself(stack: Stack, model: ThreadedModel) -> None:
    refused = stack.metric(REFUSED)

    def ask() -> str | None:
        with openai.OpenAI(base_url=stack.base + "/v1", api_key="k") as oai:
            text = f"def f(): return {next(NUMBERS)}"
            answer = oai.chat.completions.create(model="attached", messages=[{"role": "user", "content": text}])
            return answer.choices[0].message.content

    with ThreadPoolExecutor(1) as thread:
        asking = thread.submit(ask)
        eventually(lambda: stack.metric(REFUSED) > refused, "it was refused once")
        model.call(model.fake.release)
        assert asking.result(30)


@pytest.mark.usefixtures("full")
def test_what_is_not_read_still_passes(stack: Stack) -> None:
    with openai.OpenAI(base_url=stack.base + "/v1", api_key="k", max_retries=0) as oai:
        assert "attached" in {each.id for each in oai.models.list()}
