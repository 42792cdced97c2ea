"""Plain text encoders: how their files are read, and what they and the embedded model answer about likeness."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from router.questions import SimilarityAnswer
from router.runtime.adapters import adapter_for
from router.runtime.artifact import describe, open_artifact, read_card
from router.runtime.asking import Adapter, Answered, Failure, FailureCode
from router.runtime.body import BadBody, read_questions
from router.runtime.engine import Engine
from router.runtime.errors import ArtifactError
from router.runtime.model import load_model
from tests.support.artifacts_foreign import build_gliclass, build_sequence_classifier, build_text_encoder


def opened(directory: Path) -> Adapter:
    artifact = open_artifact(str(directory))
    return adapter_for(artifact, Engine(artifact, "cpu"))


def alike(adapter: Adapter, state: Any, candidates: Sequence[str], **more: Any) -> Answered | Failure:
    posed = read_questions({"q": {"type": "similarity", "candidates": list(candidates), **more}})
    plan = adapter.plan(state, [one.asked for one in posed.values()])
    (result,) = adapter.answer(plan, adapter.run(plan.rows) if plan.rows else [])
    return result


def cosines(result: Answered | Failure) -> tuple[float, ...]:
    assert isinstance(result, Answered), result
    assert isinstance(result.answer, SimilarityAnswer)
    return result.answer.similarities


@pytest.mark.parametrize("pooled", [False, True])
class TestSimilarity:
    def test_cosines_in_the_order_of_the_candidates(self, tmp_path: Path, pooled: bool) -> None:
        adapter = opened(build_text_encoder(tmp_path, pooled=pooled))
        found = cosines(alike(adapter, "law math", ["math law", "law", "code"]))
        assert found == pytest.approx((1.0, math.sqrt(0.5), 0.0), abs=1e-6)

    def test_an_answer_does_not_depend_on_its_batch(self, tmp_path: Path, pooled: bool) -> None:
        adapter = opened(build_text_encoder(tmp_path, pooled=pooled))
        alone = cosines(alike(adapter, "law", ["law math"]))
        beside = cosines(alike(adapter, "law", ["law math code code math law", "law math"]))
        assert alone[0] == pytest.approx(beside[1], abs=1e-6)

    def test_candidates_are_embedded_once(self, tmp_path: Path, pooled: bool) -> None:
        adapter = opened(build_text_encoder(tmp_path, pooled=pooled))
        alike(adapter, "law", ["math", "code"])
        posed = read_questions({"q": {"type": "similarity", "candidates": ["code", "math"]}})
        plan = adapter.plan("code", [one.asked for one in posed.values()])
        assert len(plan.rows) == 1
        assert cosines(adapter.answer(plan, adapter.run(plan.rows))[0]) == pytest.approx((1.0, 0.0), abs=1e-6)

    def test_a_long_text_counts_by_its_nearest_window(self, tmp_path: Path, pooled: bool) -> None:
        adapter = opened(build_text_encoder(tmp_path, pooled=pooled))
        result = alike(adapter, "code " * 60 + "law " * 14, ["law"])
        assert cosines(result)[0] > 0.9
        assert isinstance(result, Answered)
        assert result.complete

    def test_a_text_of_nothing_known_is_like_nothing(self, tmp_path: Path, pooled: bool) -> None:
        adapter = opened(build_text_encoder(tmp_path, pooled=pooled))
        assert cosines(alike(adapter, "\u2603", ["law"])) == (0.0,)


def test_the_embedded_model_tells_how_alike_texts_are() -> None:
    adapter = opened(Path(open_artifact("builtin").directory))
    same, other = cosines(
        alike(adapter, "How do I reset my password?", ["how to reset a password", "a recipe for soup"])
    )
    assert same > other + 0.1


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ({}, "Field required"),
        ({"candidates": []}, "1 to 1024"),
        ({"candidates": ["a"] * 1025}, "1 to 1024"),
        ({"candidates": ["a", " "]}, "not blank"),
        ({"candidates": ["a", 1]}, "not blank"),
        ({"candidates": ["a"], "instructions": "x"}, "not a field of a similarity"),
        ({"candidates": ["a"], "threshold": 0.5}, "not a field of a similarity"),
        ({"candidates": ["a"], "preset": "x"}, "not a field of a similarity"),
    ],
)
def test_what_is_no_similarity_question(question: dict[str, Any], says: str) -> None:
    with pytest.raises(BadBody) as caught:
        read_questions({"q": {"type": "similarity", **question}})
    assert says in caught.value.problems[0].msg


def test_other_questions_take_no_candidates() -> None:
    with pytest.raises(BadBody):
        read_questions({"q": {"type": "noul", "instructions": "x", "candidates": ["a"]}})


@pytest.mark.parametrize("build", [build_gliclass, lambda path: build_sequence_classifier(path, {"a": "", "b": "law"})])
def test_a_model_without_vectors_refuses(tmp_path: Path, build: Any) -> None:
    result = alike(opened(build(tmp_path)), "law", ["law"])
    assert isinstance(result, Failure)
    assert result.code is FailureCode.INVALID_QUESTION
    assert not describe(str(tmp_path)).similarity


def test_an_encoder_answers_nothing_else(tmp_path: Path) -> None:
    directory = build_text_encoder(tmp_path)
    adapter = opened(directory)
    posed = read_questions({"q": {"type": "noul", "instructions": "law"}})
    (result,) = adapter.answer(adapter.plan("law", [one.asked for one in posed.values()]), [])
    assert isinstance(result, Failure)
    can = describe(str(directory))
    assert can.similarity
    assert not can.question_types


class TestFiles:
    def pooling(self, directory: Path, **modes: bool) -> None:
        (directory / "1_Pooling").mkdir()
        (directory / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 8, **modes}))

    def test_pooling_by_the_first_token(self, tmp_path: Path) -> None:
        directory = build_text_encoder(tmp_path)
        self.pooling(directory, pooling_mode_cls_token=True, pooling_mode_mean_tokens=False)
        # The first token is [CLS], which has no direction here.
        assert cosines(alike(opened(directory), "law", ["law"])) == (0.0,)

    @pytest.mark.parametrize("modes", [{"pooling_mode_max_tokens": True}, {}])
    def test_pooling_that_is_not_known(self, tmp_path: Path, modes: dict[str, bool]) -> None:
        directory = build_text_encoder(tmp_path)
        self.pooling(directory, **modes)
        with pytest.raises(ArtifactError, match="known here: pooling_mode_mean_tokens or pooling_mode_cls_token"):
            read_card(directory)

    def test_modules_that_are_not_known(self, tmp_path: Path) -> None:
        directory = build_text_encoder(tmp_path)
        modules = [{"type": f"sentence_transformers.models.{name}"} for name in ("Transformer", "Pooling", "Dense")]
        (directory / "modules.json").write_text(json.dumps(modules))
        with pytest.raises(ArtifactError, match="Dense is not known here"):
            read_card(directory)
        (directory / "modules.json").write_text(json.dumps(modules[:2]))
        assert read_card(directory).adapter == "encoder"
        (directory / "modules.json").write_text("{}x")
        with pytest.raises(ArtifactError, match="not a list of modules"):
            read_card(directory)

    def test_the_trained_length(self, tmp_path: Path) -> None:
        directory = build_text_encoder(tmp_path)
        (directory / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 12}))
        assert read_card(directory).limits.graph_tokens == 12

    def test_a_classifier_stays_one(self, tmp_path: Path) -> None:
        assert read_card(build_sequence_classifier(tmp_path, {"a": "", "b": "law"})).adapter == "classifier"

    def test_a_graph_without_vectors(self, tmp_path: Path) -> None:
        directory = build_text_encoder(tmp_path, pooled=True)
        (directory / "decision.json").write_text(json.dumps({"encoder": {"pooling": "none"}}))
        load_model(str(directory), "cpu").close()
        directory = build_text_encoder(tmp_path / "b")
        (directory / "decision.json").write_text(json.dumps({"encoder": {"pooling": "none"}}))
        with pytest.raises(ArtifactError, match="has none of the outputs sentence_embedding, pooler_output"):
            load_model(str(directory), "cpu")
