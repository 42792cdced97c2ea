from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.runtime import json_text, question_body
from router.runtime.artifact import open_artifact
from router.runtime.body import BadBody, read_body, read_questions
from router.runtime.engine import Engine
from router.runtime.json_text import parse_json
from router.runtime.question_body import read_question
from router.runtime.render import render_block
from router.runtime.rows import finite
from router.runtime.scoring import choice_answer, logistic, score_answer, shares, sigmoid, softmax
from router.runtime.tokens import windows
from router.runtime.two_tower import TwoTower
from tests.support.artifacts import build_tiny_artifact
from tests.support.json_spellings import Writer, documents, texts

QUICK = settings(max_examples=60, deadline=None)
PIECES = ["law", "Math", "filler", " ", "  ", "\n", "\t", "😀", "👩\u200d👩\u200d👧", "é", "e\u0301", "東京"]
PIECES += ["🇵🇱", "[SEP]", "[CLS]", ".", "\ufb01", "\u0130"]
FORGED = [*PIECES, "[", "]", "SEP", "CLS", "PAD", "[PAD]", "[MASK]"]


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TwoTower]:
    directory: Path = build_tiny_artifact(tmp_path_factory.mktemp("tiny"))
    artifacts = {"tiny": open_artifact(str(directory)), "builtin": open_artifact("builtin")}
    return {name: TwoTower(artifact, Engine(artifact, "cpu")) for name, artifact in artifacts.items()}


def ask(adapter: TwoTower, state: str, questions: dict[str, Any]) -> dict[str, Any]:
    posed = read_questions(questions)
    plan = adapter.plan(state, [one.asked for one in posed.values()])
    raw = [adapter.run([row])[0] for row in plan.rows]
    return render_block(posed, dict(zip(posed, adapter.answer(plan, raw), strict=True)))


@given(st.integers(0, 3000), st.integers(4, 600), st.data())
@QUICK
def test_windows_cover_everything_and_fit(length: int, room: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(2, room))
    overlap = data.draw(st.integers(0, size - 1))
    cuts = windows(length, room, size, overlap)
    covered = {token for start, end in cuts for token in range(start, end)}
    assert covered == set(range(length))
    assert all(end - start <= room for start, end in cuts)
    assert len(set(cuts)) == len(cuts)
    if length > room:
        assert {end - start for start, end in cuts} == {size}
        assert all(a[1] - b[0] >= min(overlap, size) for a, b in itertools.pairwise(cuts))


@given(text=st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
@QUICK
def test_spans_are_true_places_of_the_state(adapters: dict[str, TwoTower], text: str) -> None:
    question = {"type": "span", "instructions": "where", "labels": [{"key": "law"}, {"key": "math"}]}
    spans = ask(adapters["tiny"], text, {"q": question})["spans"]["q"]
    end = 0
    for span in spans:
        assert 0 <= end <= span["start"] < span["end"] <= len(text)
        assert span["text"] == text[span["start"] : span["end"]] == span["text"].strip()
        assert span["label"] in span["text"].lower()
        end = span["end"]


@given(text=st.text(max_size=120))
@settings(max_examples=25, deadline=None)
def test_spans_of_the_embedded_model_never_leave_the_text(adapters: dict[str, TwoTower], text: str) -> None:
    block = ask(adapters["builtin"], "Anna Kowalska " + text + " a@b.org", {"p": {"type": "span", "preset": "pii"}})
    whole = "Anna Kowalska " + text + " a@b.org"
    for span in block["spans"]["p"]:
        assert span["text"] == whole[span["start"] : span["end"]]
        assert span["text"]
        span["text"].encode()


@given(
    text=st.lists(st.sampled_from([*PIECES, "[", "]", "SEP", "CLS", "PAD", "[PAD]", "[MASK]"]), max_size=30).map(
        "".join
    )
)
@QUICK
def test_no_text_becomes_a_special_token(adapters: dict[str, TwoTower], text: str) -> None:
    for adapter in adapters.values():
        tokens = adapter.card.tokens
        encoded = adapter.tokenizer.encode(text, 100)
        assert not {tokens.pad, tokens.cls, tokens.sep} & set(encoded.ids.tolist())


@given(text=st.lists(st.sampled_from(FORGED), max_size=30).map("".join) | st.text(max_size=60))
@QUICK
def test_a_text_has_the_same_ids_with_and_without_their_places(adapters: dict[str, TwoTower], text: str) -> None:
    for adapter in adapters.values():
        plain, placed = (adapter.tokenizer.encode(text, 100, placed=placed) for placed in (False, True))
        assert plain.ids.tolist() == placed.ids.tolist()
        assert (len(plain.offsets), len(placed.offsets)) == (0, len(placed.ids))


@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=12))
@QUICK
def test_answers_are_distributions(logits: list[float]) -> None:
    values = shares(logits)
    assert values == pytest.approx(list(softmax(np.array(logits))), abs=1e-12)
    choice = choice_answer([str(i) for i in range(len(values))], values)
    assert math.isclose(sum(choice.probabilities.values()), 1, abs_tol=1e-6)
    assert choice.probabilities[choice.choice] == max(choice.probabilities.values())
    assert 0 <= choice.confidence <= 1
    score = score_answer(values)
    assert -1e-9 <= score.score <= len(values) - 1 + 1e-9
    assert 0 <= score.confidence <= 1
    assert [logistic(logit) for logit in logits] == pytest.approx(list(sigmoid(np.array(logits))), abs=1e-12)
    assert ((sigmoid(np.array(logits)) >= 0) & (sigmoid(np.array(logits)) <= 1)).all()


@pytest.mark.parametrize("size", [1, 64, 65, 1000])
@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_found_wherever_it_stands(size: int, odd: float) -> None:
    values = np.ones((1, size), np.float32)
    assert finite(values)
    values[0, size // 2] = odd
    assert not finite(values)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELD_NAMES = ["type", "instructions", "criteria", "choices", "levels", "labels", "over", "require_full_input"]
FIELDS = st.sampled_from([*FIELD_NAMES, "overflow", "head", "threshold", "preset"])
TYPES = st.sampled_from(["noul", "choice", "score", "set", "span"])
QUESTIONS = st.builds(lambda kind, rest: {**rest, "type": kind}, TYPES, st.dictionaries(FIELDS, JSON, max_size=5))


@given(JSON | st.fixed_dictionaries({"state": JSON, "questions": st.dictionaries(st.text(max_size=3), QUESTIONS)}))
@settings(max_examples=120, deadline=None)
def test_any_json_is_a_body_or_a_list_of_problems(data: Any) -> None:
    problems = []
    try:
        body = read_body(data)
    except BadBody as error:
        problems, body = error.problems, None
    assert (body is None) == bool(problems)


@given(JSON, st.sampled_from([(",", ":"), (", ", ": ")]), st.booleans())
def test_json_is_read_as_it_stands_however_it_is_written(value: Any, separators: tuple[str, str], narrow: bool) -> None:
    text = json.dumps(value, separators=separators, ensure_ascii=narrow)
    assert parse_json(text.encode()) == value


@given(st.dictionaries(st.text("ab", max_size=2), st.integers(0, 9), min_size=1), st.data())
def test_a_key_twice_is_refused_however_it_is_written(pairs: dict[str, int], data: st.DataObject) -> None:
    key, value = data.draw(st.sampled_from(sorted(pairs))), data.draw(st.integers(0, 9))
    members = [*pairs.items(), (key, value)]
    for gap in ("", " "):
        text = "{" + f",{gap}".join(f"{json.dumps(name)}:{gap}{number}" for name, number in members) + "}"
        with pytest.raises(BadBody):
            parse_json(f'[{{"in":{gap}{text}}}]'.encode())


@given(documents, st.integers(0, 2**32))
def test_json_is_read_alike_in_every_spelling(document: dict[str, Any], seed: int) -> None:
    assert parse_json(Writer(seed).value(document).encode("utf-8", "surrogatepass")) == document


@given(documents, texts, st.integers(0, 2**32))
def test_a_key_twice_is_refused_in_every_spelling(document: dict[str, Any], key: str, seed: int) -> None:
    writer = Writer(seed)
    pairs = [*document.items(), (key, document), (key, None)]
    twice = writer.object(writer.random.sample(pairs, len(pairs)))
    for body in (twice, f"[{twice}]", f'{{"in" :{twice}}}'):
        with pytest.raises(BadBody, match="1 problems"):
            parse_json(body.encode("utf-8", "surrogatepass"))


@given(documents, st.integers(0, 2**32))
def test_values_are_counted_in_every_spelling(document: dict[str, Any], seed: int) -> None:
    def count(value: Any) -> int:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return 1 + sum(map(count, inner))

    assert json_text._values(Writer(seed).value(document).encode("utf-8", "surrogatepass")) == count(document)


@given(st.lists(st.integers(2**60, 2**70) | st.integers(-(2**70), -(2**60)) | st.floats(1e17, 1e20), min_size=1))
def test_large_numbers_are_exact(numbers: list[float]) -> None:
    got = parse_json(json.dumps({"n": numbers}).encode())["n"]
    assert [(type(number), number) for number in got] == [(type(number), number) for number in numbers]


@given(JSON)
def test_a_question_that_was_read_before_reads_the_same(value: Any) -> None:
    question = value if isinstance(value, dict) else {"type": "noul", "instructions": value}
    for _ in range(2):
        assert read_question(question) == question_body._read(question)
