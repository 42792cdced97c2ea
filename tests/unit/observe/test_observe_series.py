"""What clients send never makes a series: the number of them stays as it is under any names, headers and mistakes."""

from __future__ import annotations

import random
import re

import orjson
import pytest

from router.observe import Metrics
from router.pipeline import Pipeline
from router.questions import NoulAnswer
from router.verdict import HeadVerdict
from router.wire.http import Head
from tests.support.plans import PLAIN, ScriptedAsker, generation_of, plan_of

REQUESTS = 10_000


def series(metrics: Metrics) -> str:
    """Every series, without its value."""
    lines = metrics.render().decode().splitlines()
    return "\n".join(line.rsplit(" ", 1)[0] for line in lines if not line.startswith("#"))


PATHS = ("/v1/chat/completions", "/v1/responses", "/v1/messages")
KNOWN = ("auto", "strict", "fixed", "general", "coder", None, 3)


class Client:
    """Sends what clients send, right and wrong in every way, under names that it makes up."""

    def __init__(self, pipeline: Pipeline, seed: int) -> None:
        self._pipeline = pipeline
        self._chance = random.Random(seed)
        self.invented: set[str] = set()

    async def send(self) -> None:
        """One request; its head may already settle it."""
        name = f"invented-{self._chance.getrandbits(64):x}"
        self.invented.add(name)
        chance = self._chance
        path = chance.choice([*PATHS, *PATHS, f"/v1/{name}", f"/{name}", "/v1/models"])
        headers = {"authorization": f"Bearer {name}", name: name, "x-session-id": name, "x-vsr-debug": "true"}
        if chance.random() < 0.1:
            headers["content-encoding"] = chance.choice([name, "gzip", "zstd", "br"])
        head = Head(chance.choice(["POST", "POST", "POST", "GET", name]), path, headers)
        if self._pipeline.on_head(head) is HeadVerdict.NEED_BODY:
            await self._pipeline.decided(head, self._body(name))

    def _body(self, name: str) -> bytes:
        chance = self._chance
        said = [{"role": chance.choice(["user", "assistant", name]), "content": chance.choice([name, None, 7, [name]])}]
        document = {
            "model": chance.choice([name, *KNOWN]),
            "messages": said,
            "input": chance.choice([name, said]),
            name: name,
            "metadata": {name: name},
            "user": name,
            "stream": chance.choice([True, False, name]),
        }
        whole = orjson.dumps(document)
        return chance.choice([whole, whole, whole, whole[: chance.randrange(len(whole))], b"", name.encode()])


@pytest.mark.parametrize("text", [PLAIN, PLAIN.replace("providers:\n", "providers:\n  defaults: {model: general}\n")])
async def test_random_names_keys_and_mistakes_make_no_series(text: str) -> None:
    metrics = Metrics()
    asker = ScriptedAsker({"is_code": NoulAnswer(0.9)})
    pipeline = Pipeline(generation_of(plan_of(text), asker), metrics)
    first, second = Client(pipeline, 1), Client(pipeline, 2)
    for _ in range(REQUESTS // 5):  # until every kind of mistake has been made
        await first.send()
    before = series(metrics)
    assert {"chat", "responses", "messages"} <= set(re.findall('format="([a-z]+)"', before))
    assert len(set(re.findall('reason="([a-z_]+)"', before))) >= 8
    for family in ("llm_decision_match_total", "llm_model_selection_total", "llm_model_requests_total"):
        assert family in before
    for _ in range(REQUESTS):
        await second.send()
    assert series(metrics) == before
    assert len(second.invented) == REQUESTS
    assert "invented" not in before
