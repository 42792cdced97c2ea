"""Prompts that no model could take."""

from __future__ import annotations

import orjson
import pytest

from router.acting.fitting import LONGEST_TOKEN, check_fits, largest_window, least_tokens
from router.acting.target import Refused
from router.observe import Metrics
from router.pipeline import Pipeline
from router.verdict import Forward
from router.wire.errors import ErrorCode
from router.wire.http import Reply
from router.wire.longtext import LongText
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
    most = 100 * LONGEST_TOKEN // len(letter.encode())
    check_fits(100, read_request(Format.CHAT, body(text=letter * most)))
    check_fits(None, read_request(Format.CHAT, body(text=letter * most * 9)))
    with pytest.raises(Refused) as refused:
        check_fits(100, read_request(Format.CHAT, body(text=letter * (most + 1))))
    assert refused.value.code is ErrorCode.CONTEXT_LENGTH_EXCEEDED


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        (" " * 100_000, 0),
        ("\t\n\r\n \v\f" * 1000, 0),
        ("two words", 2),
        ("  two\n\twords  ", 2),
        ("x", 1),
        ("-" * 128, 1),
        ("-" * 129, 2),
        ("日本" * 64, 3),
        ("\ud800 \ud800", 2),
        ("    return {}\n" * 50, 100),
        # Other white space parts words too, but not for every tokenizer.
        ("one\u3000word", 1),
        ("one\u00a0word", 1),
    ],
)
def test_the_fewest_tokens_of_a_text(text: str, tokens: int) -> None:
    assert least_tokens(text) == tokens


def test_texts_in_pieces_have_as_many_tokens_as_whole() -> None:
    text = " two words\n\U0001f600and  more" * 9999 + "w" * 70_000
    assert least_tokens(LongText([text])) == least_tokens(text)
    assert least_tokens(text, "", LongText([text]), "end") == 2 * least_tokens(text) + 1


@pytest.mark.parametrize(
    "text", [" " * 99_000, "\n" * 99_000, "-" * 12_800, "=" * 12_800, "word" + " " * 99_000, "ab " * 100]
)
def test_what_packs_many_bytes_into_a_token_is_not_refused(text: str) -> None:
    check_fits(100, read_request(Format.CHAT, body(text=text)))


@pytest.mark.parametrize("blank", [" ", "\n", "     "])
def test_more_words_than_tokens_are_refused(blank: str) -> None:
    check_fits(100, read_request(Format.CHAT, body(text=blank.join(["a"] * 100))))
    with pytest.raises(Refused):
        check_fits(100, read_request(Format.CHAT, body(text=blank.join(["a"] * 101))))


def test_words_end_with_their_turn() -> None:
    said = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}] * 50
    check_fits(100, read_request(Format.CHAT, orjson.dumps({"model": "auto", "messages": said})))
    with pytest.raises(Refused):
        check_fits(99, read_request(Format.CHAT, orjson.dumps({"model": "auto", "messages": said})))


def test_system_text_counts_once_wherever_it_stands() -> None:
    said = [{"role": "system", "content": "x " * 50}, {"role": "user", "content": "y " * 50}]
    check_fits(100, read_request(Format.CHAT, orjson.dumps({"model": "auto", "messages": said})))
    apart = {"model": "auto", "system": "x " * 50, "messages": said[1:], "max_tokens": 1}
    check_fits(100, read_request(Format.MESSAGES, orjson.dumps(apart)))
    with pytest.raises(Refused):
        check_fits(99, read_request(Format.MESSAGES, orjson.dumps(apart)))


@pytest.mark.parametrize("model", ["auto", "fixed", "coder"])
async def test_it_is_refused_before_anything_is_asked(model: str) -> None:
    pipeline = Pipeline(generation_of(plan_of(ALL)), Metrics())
    refused = await pipeline.decided(post(CHAT), body(model, text="x " * 101))
    assert isinstance(refused, Reply)
    assert refused.status == 400
    assert orjson.loads(refused.body)["error"]["code"] == "context_length_exceeded"
    if model == "coder":
        assert isinstance(await pipeline.decided(post(CHAT), body(model, text="x " * 100)), Forward)
