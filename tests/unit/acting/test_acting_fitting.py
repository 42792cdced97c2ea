"""Prompts that no model could take."""

from __future__ import annotations

import orjson
import pytest

from router.acting.fitting import BYTES_PER_TOKEN, check_fits, largest_window
from router.acting.target import Refused
from router.observe import Metrics
from router.pipeline import Pipeline
from router.verdict import Forward
from router.wire.errors import ErrorCode
from router.wire.http import Reply
from router.wire.request import read_request
from router.wire.surface import Format
from tests.support.plans import PLAIN, generation_of, plan_of
from tests.unit.test_pipeline import CHAT, body, post

SIZED = PLAIN.replace("{name: coder,", "{name: coder, context_window_size: 100,")
ALL = SIZED.replace("{name: general,", "{name: general, context_window_size: 50,")


def test_the_roomiest_model_of_a_recipe_counts_and_all_must_be_known() -> None:
    plan = plan_of(ALL)
    assert largest_window(plan, plan.recipes["ask"]) == 100
    assert largest_window(plan, plan.recipes["fixed"]) == 50
    plain = plan_of(SIZED)
    assert largest_window(plain, plain.recipes["fixed"]) is None


@pytest.mark.parametrize("letter", ["x", "é", "日"])
def test_only_what_is_certainly_too_long_is_refused(letter: str) -> None:
    most = 100 * BYTES_PER_TOKEN // len(letter.encode())
    check_fits(100, read_request(Format.CHAT, body(text=letter * most)))
    check_fits(None, read_request(Format.CHAT, body(text=letter * most * 9)))
    with pytest.raises(Refused) as refused:
        check_fits(100, read_request(Format.CHAT, body(text=letter * (most + 1))))
    assert refused.value.code is ErrorCode.CONTEXT_LENGTH_EXCEEDED


def test_system_text_counts_once_wherever_it_stands() -> None:
    said = [{"role": "system", "content": "x" * 300}, {"role": "user", "content": "y" * 300}]
    check_fits(100, read_request(Format.CHAT, orjson.dumps({"model": "auto", "messages": said})))
    apart = {"model": "auto", "system": "x" * 500, "messages": said[1:], "max_tokens": 1}
    check_fits(100, read_request(Format.MESSAGES, orjson.dumps(apart)))
    with pytest.raises(Refused):
        check_fits(99, read_request(Format.MESSAGES, orjson.dumps(apart)))


@pytest.mark.parametrize("model", ["auto", "fixed", "coder"])
async def test_it_is_refused_before_anything_is_asked(model: str) -> None:
    pipeline = Pipeline(generation_of(plan_of(ALL)), Metrics())
    refused = await pipeline.decided(post(CHAT), body(model, text="x" * 801))
    assert isinstance(refused, Reply)
    assert refused.status == 400
    assert orjson.loads(refused.body)["error"]["code"] == "context_length_exceeded"
    if model == "coder":
        assert isinstance(await pipeline.decided(post(CHAT), body(model, text="x" * 800)), Forward)
