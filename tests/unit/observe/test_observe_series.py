"""What clients send never makes a series: the number of them stays as it is under any names, headers and mistakes."""

from __future__ import annotations

import random

import orjson

from router.observe import Metrics
from router.pipeline import Pipeline
from router.questions import NoulAnswer
from router.wire.http import Head
from tests.support.plans import PLAIN, ScriptedAsker, generation_of, plan_of

REQUESTS = 10_000


def series(metrics: Metrics) -> int:
    return sum(not line.startswith(b"#") for line in metrics.render().splitlines())


async def test_random_names_keys_and_mistakes_make_no_series() -> None:
    chance = random.Random(7)
    metrics = Metrics()
    text = PLAIN.replace("providers:\n", "providers:\n  defaults: {model: general}\n")
    pipeline = Pipeline(generation_of(plan_of(text), ScriptedAsker({"is_code": NoulAnswer(0.9)})), metrics)

    async def send(model: object, key: str) -> None:
        head = Head("POST", "/v1/chat/completions", {"authorization": key, key: key, "x-session-id": key})
        body = orjson.dumps({"model": model, "messages": [{"role": "user", "content": key}], key: key})
        await pipeline.decided(head, chance.choice([body, body[:-1], b""]) if model is None else body)

    for model in ("auto", "strict", "fixed", "general", "nobody", None, None, None, 3):
        await send(model, "first")
    for broken in (b"{", b"", b"{}", b'{"model":"auto","model":"b"}', b'{"model":"auto","messages":1}'):
        await pipeline.decided(Head("POST", "/v1/chat/completions"), broken)
    before = series(metrics)
    for number in range(REQUESTS):
        name = f"{chance.random()}-{number}"
        await send(chance.choice([name, "auto", "strict", None, 3]), name)
    assert series(metrics) == before
