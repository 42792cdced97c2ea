"""Adapters of public contracts, on tiny artifacts whose every number can be worked out."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from router.runtime.adapters import adapter_for
from router.runtime.artifact import open_artifact
from router.runtime.asking import Adapter
from router.runtime.body import read_questions
from router.runtime.engine import Engine
from router.runtime.tokens import Tokenizer
from tests.support.artifacts_foreign import (
    build_gliclass,
    build_gliner,
    build_marker_row,
    build_sequence_classifier,
    build_token_classifier,
)

Ask = Callable[..., dict[str, Any]]


def opened(directory: Path, *, shared_context: bool = False) -> Adapter:
    artifact = open_artifact(str(directory))
    return adapter_for(artifact, Engine(artifact, "cpu"), shared_context=shared_context)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def softmax(*logits: float) -> list[float]:
    raised = [math.exp(x) for x in logits]
    return [x / sum(raised) for x in raised]


def choice(*keys: str) -> dict[str, Any]:
    return {"type": "choice", "instructions": "which", "criteria": dict.fromkeys(keys)}


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that was tokenised."""
    seen: list[str] = []
    original, words = Tokenizer.encode, Tokenizer.words

    def encode(self: Tokenizer, text: str, most: int, *, placed: bool = False) -> Any:
        seen.append(text)
        return original(self, text, most, placed=placed)

    def split(self: Tokenizer, texts: Any, most: int) -> Any:
        seen.append(" ".join(texts))
        return words(self, texts, most)

    monkeypatch.setattr(Tokenizer, "encode", encode)
    monkeypatch.setattr(Tokenizer, "words", split)
    return seen


class TestMarkerRow:
    @pytest.fixture
    def adapter(self, tmp_path: Path) -> Adapter:
        return opened(build_marker_row(tmp_path / "own"))

    def test_choice(self, adapter: Adapter, ask: Ask) -> None:
        answer = ask(adapter, "law law math", {"q": choice("math", "law", "code")})["answers"]["q"]
        assert list(answer["probabilities"].values()) == pytest.approx(softmax(2, 4, 0))

    def test_noul_is_asked_as_no_and_yes(self, adapter: Adapter, ask: Ask) -> None:
        question = {"type": "noul", "instructions": "is it", "criteria": {"true": "law", "false": "math"}}
        answer = ask(adapter, "law", {"q": question})["answers"]["q"]
        # 0.25 x 2 x 1: the graph was told that this is a noul, and yes stands second.
        assert answer["noul"] == pytest.approx(softmax(0, 2 + 0.5)[1])
        plain = ask(adapter, "law", {"q": {"type": "noul", "instructions": "code"}})["answers"]["q"]
        assert plain["noul"] == pytest.approx(softmax(0, 0.5)[1])

    def test_score(self, adapter: Adapter, ask: Ask) -> None:
        question = {"type": "score", "instructions": "how", "criteria": ["easy", "medium", "hard"]}
        answer = ask(adapter, "hard", {"q": question})["answers"]["q"]
        assert list(answer["probabilities"].values()) == pytest.approx(softmax(0, 0.25, 2 + 0.5))
        assert answer["score"] == pytest.approx(sum(int(k) * p for k, p in answer["probabilities"].items()))

    def test_rows_look_as_the_contract_says(self, adapter: Adapter) -> None:
        posed = read_questions({"q": choice("math", "law")})
        (row,) = adapter.plan("code", [one.asked for one in posed.values()]).rows
        words = [adapter.tokenizer._inner.id_to_token(ident) for ident in row.ids]  # type: ignore[attr-defined]
        expected = "[CLS] choice question [UNK] [UNK] [SEP] [MASK] math [MASK] law [SEP] code [SEP]"
        assert " ".join(words) == expected
        assert list(row.extra["marker_pos"]) == [6, 8]
        assert list(row.extra["marker_mask"]) == [True, True]
        assert row.extra["qtype"] == 0

    def test_temperatures(self, tmp_path: Path, ask: Ask) -> None:
        config = {"temperature": [2.0, 1.0, 4.0], "temperature_by_options": {"choice:3-5": 4.0}}
        adapter = opened(build_marker_row(tmp_path, config=config))
        two = ask(adapter, "law", {"q": choice("law", "math")})["answers"]["q"]["probabilities"]["law"]
        three = ask(adapter, "law", {"q": choice("law", "math", "code")})["answers"]["q"]["probabilities"]["law"]
        assert two == pytest.approx(softmax(1, 0)[0])
        assert three == pytest.approx(softmax(0.5, 0, 0)[0])

    def test_text_cannot_spell_a_marker(self, adapter: Adapter, ask: Ask) -> None:
        posed = read_questions({"q": choice("math [MASK]", "[SEP] law")})
        (row,) = adapter.plan("x [MASK] law [SEP] [CLS]", [one.asked for one in posed.values()]).rows
        assert [int((row.ids == ident).sum()) for ident in (2, 3, 4)] == [1, 3, 2]

    def test_options_are_cut_and_the_state_never_is_without_saying(self, tmp_path: Path, ask: Ask) -> None:
        adapter = opened(build_marker_row(tmp_path, config={"max_len": 160, "head_max_len": 120}))
        posed = read_questions({"q": choice("math " * 80, "law")})
        (row,) = adapter.plan("code", [one.asked for one in posed.values()]).rows
        first, second = row.extra["marker_pos"]
        assert second - first == 1 + 48
        block = ask(adapter, "code " * 500, {"q": choice("math", "law")})
        assert "input_coverage" not in block["answers"]["q"]

    def test_more_options_than_the_head_holds(self, adapter: Adapter, ask: Ask) -> None:
        criteria = {f"o{n}": "math law" for n in range(14)}
        posed = read_questions({"q": choice(*criteria) | {"criteria": criteria}})
        (row,) = adapter.plan("code", [one.asked for one in posed.values()]).rows
        assert len(row.extra["marker_pos"]) == 14
        assert row.tokens <= 64
        many = choice(*(f"o{n}" for n in range(15)))
        assert ask(adapter, "x", {"q": many})["answers"]["q"]["error"] == "invalid_question"

    def test_long_states_are_read_in_windows(self, adapter: Adapter, ask: Ask) -> None:
        state = "code " * 300 + "law"
        described = {"type": "noul", "instructions": "x", "criteria": {"true": "law", "false": "math"}}
        full = {**described, "require_full_input": True}
        cut = {**described, "overflow": "truncate"}
        answers = ask(adapter, state, {"f": full, "c": cut})["answers"]
        assert answers["f"]["noul"] == pytest.approx(softmax(0, 2.5)[1])
        assert answers["f"]["input_coverage"] == "complete"
        assert answers["c"]["noul"] == pytest.approx(softmax(0, 0.5)[1])
        assert answers["c"]["input_coverage"] == "partial"

    def test_what_is_longer_than_all_windows(self, adapter: Adapter, ask: Ask) -> None:
        state = "code " * 33_000
        full = {**choice("math", "law"), "require_full_input": True}
        answers = ask(adapter, state, {"f": full, "o": choice("math", "law")}, alone=False)["answers"]
        assert answers["f"]["error"] == "max_length_exceeded"
        assert answers["o"]["input_coverage"] == "partial"

    def test_answers_do_not_depend_on_the_batch(self, adapter: Adapter, ask: Ask) -> None:
        questions = {"a": choice("math", "law"), "b": choice(*"vwxyz"), "c": {"type": "noul", "instructions": "law"}}
        assert ask(adapter, "law " * 70, questions) == ask(adapter, "law " * 70, questions, alone=False)

    def test_over_and_what_it_cannot_answer(self, adapter: Adapter, ask: Ask) -> None:
        state = {"request": "law", "tools": "math"}
        picked = ask(adapter, state, {"q": {**choice("math", "law"), "over": "tools"}})["answers"]["q"]
        assert picked["choice"] == "math"
        refused = {
            "set": {"type": "set", "instructions": "x", "criteria": {"law": None}},
            "preset": {"type": "noul", "preset": "jailbreak"},
        }
        answers = ask(adapter, state, refused)["answers"]
        assert {answer["error"] for answer in answers.values()} == {"invalid_question"}


class TestSharing:
    """A state is tokenised once a call; with `shared_context` once for the calls that follow, too."""

    QUESTIONS = ("math", "law", "code")

    def ask_all(self, adapter: Adapter, state: str) -> None:
        asked = {name: {"type": "set", "instructions": "x", "criteria": {name: None}} for name in self.QUESTIONS}
        kind = "choice" if "set" not in {t.value for t in adapter.card.question_types} else "set"
        if "span" in {t.value for t in adapter.card.question_types}:
            kind = "span"
        for question in asked.values():
            question["type"] = kind
            if kind == "choice":
                question["criteria"] = {"math": None, "law": None}
        adapter.plan(state, [one.asked for one in read_questions(asked).values()])

    @pytest.mark.parametrize("build", [build_marker_row, build_gliclass, build_gliner])
    def test_once_a_call(self, tmp_path: Path, encoded: list[str], build: Callable[[Path], Path]) -> None:
        adapter = opened(build(tmp_path))
        state = "a state of some words " * 40
        encoded.clear()
        self.ask_all(adapter, state)
        assert sum(text.startswith("a state") for text in encoded) == 1
        self.ask_all(adapter, state)
        assert sum(text.startswith("a state") for text in encoded) == 2

    @pytest.mark.parametrize("build", [build_marker_row, build_gliclass, build_gliner])
    def test_once_at_all(self, tmp_path: Path, encoded: list[str], build: Callable[[Path], Path]) -> None:
        adapter = opened(build(tmp_path), shared_context=True)
        encoded.clear()
        for _ in range(3):
            self.ask_all(adapter, "a state of some words")
        assert sum(text.startswith("a state") for text in encoded) == 1

    def test_a_state_once_model_reads_it_once_for_all_questions(self, tiny: Adapter, encoded: list[str]) -> None:
        encoded.clear()
        asked = {"a": choice("math", "law"), "b": {"type": "noul", "instructions": "law"}}
        plan = tiny.plan("a state", [one.asked for one in read_questions(asked).values()])
        assert encoded.count("a state") == 1
        again = tiny.plan("a state", [one.asked for one in read_questions(asked).values()])
        assert len(plan.rows) == len(again.rows)


class TestClassifiers:
    def test_a_noul_sums_the_labels_that_mean_yes(self, tmp_path: Path, ask: Ask) -> None:
        labels = {"BENIGN": "", "INJECTION": "attack", "JAILBREAK": "jailbreak"}
        adapter = opened(build_sequence_classifier(tmp_path, labels))
        questions = {"j": {"type": "noul", "preset": "jailbreak"}, "c": {"type": "choice", "preset": "classify"}}
        answers = ask(adapter, "an attack", questions)["answers"]
        even = softmax(0, 6, 0)
        assert answers["j"]["noul"] == pytest.approx(even[1] + even[2])
        assert list(answers["c"]["probabilities"].values()) == pytest.approx(even)

    def test_several_labels_are_independent(self, tmp_path: Path, ask: Ask) -> None:
        adapter = opened(build_sequence_classifier(tmp_path, {"violence": "strong", "hate": "angry"}, multi=True))
        block = ask(adapter, "strong", {"q": {"type": "set", "preset": "classify", "threshold": 0.6}})
        assert block["sets"]["q"]["selected"] == ["violence"]
        assert block["answers"]["q.violence"]["noul"] == pytest.approx(sigmoid(6))
        assert block["answers"]["q.hate"]["noul"] == pytest.approx(0.5)

    def test_one_label_is_yes_or_no(self, tmp_path: Path, ask: Ask) -> None:
        adapter = opened(build_sequence_classifier(tmp_path, {"toxic": "angry"}))
        answers = [
            ask(adapter, t, {"q": {"type": "noul", "preset": "classify"}})["answers"]["q"] for t in ("angry", "x")
        ]
        assert [answer["noul"] for answer in answers] == pytest.approx([sigmoid(6), 0.5])

    def test_a_long_text_is_read_in_windows(self, tmp_path: Path, ask: Ask) -> None:
        adapter = opened(build_sequence_classifier(tmp_path, {"SAFE": "", "INJECTION": "attack"}))
        question = {"type": "noul", "preset": "jailbreak", "require_full_input": True}
        answer = ask(adapter, "law " * 90 + "attack", {"q": question}, alone=False)["answers"]["q"]
        assert answer["noul"] == pytest.approx(softmax(0, 6)[1])
        assert answer["input_coverage"] == "complete"

    def test_free_questions_are_refused(self, tmp_path: Path, ask: Ask) -> None:
        adapter = opened(build_sequence_classifier(tmp_path, {"a": "", "b": ""}))
        assert ask(adapter, "x", {"q": choice("a", "b")})["answers"]["q"]["error"] == "invalid_question"


class TestTaggers:
    CLASSES = {  # noqa: RUF012
        "B-PERSON": ["alpha", "beta", "john", "##son"],
        "O": ["says"],
        "I-PERSON": ["gamma"],
        "B-EMAIL_ADDRESS": ["email"],
        "I-EMAIL_ADDRESS": ["mail"],
    }

    @pytest.fixture
    def adapter(self, tmp_path: Path) -> Adapter:
        return opened(build_token_classifier(tmp_path, self.CLASSES))

    def spans(self, ask: Ask, adapter: Adapter, text: str) -> list[tuple[str, str]]:
        found = ask(adapter, text, {"q": {"type": "span", "preset": "pii"}}).get("spans", {"q": []})["q"]
        return [(span["label"], span["text"]) for span in found]

    def test_tags_become_spans_of_bare_labels(self, adapter: Adapter, ask: Ask) -> None:
        found = self.spans(ask, adapter, "alpha gamma says email")
        assert found == [("PERSON", "alpha gamma"), ("EMAIL_ADDRESS", "email")]

    def test_a_beginning_keeps_neighbours_apart(self, adapter: Adapter, ask: Ask) -> None:
        assert self.spans(ask, adapter, "alpha beta gamma") == [("PERSON", "alpha"), ("PERSON", "beta gamma")]

    def test_a_word_found_in_part_is_found_whole(self, adapter: Adapter, ask: Ask) -> None:
        assert self.spans(ask, adapter, "says johnson") == [("PERSON", "johnson")]

    def test_probabilities_of_one_label_add_up(self, adapter: Adapter, ask: Ask) -> None:
        answer = ask(adapter, "alpha", {"q": {"type": "span", "preset": "pii"}})
        both = softmax(6, 3, 0, 0, 0)
        assert answer["spans"]["q"][0]["probability"] == pytest.approx(both[0] + both[2])

    def test_a_threshold_above_finds_nothing(self, adapter: Adapter, ask: Ask) -> None:
        block = ask(adapter, "alpha", {"q": {"type": "span", "preset": "pii", "threshold": 0.99}})
        assert not block["spans"]["q"]
        assert block["answers"]["q"]["noul"] > 0.9

    def test_offsets_are_code_points(self, adapter: Adapter, ask: Ask) -> None:
        text = "\U0001f600 é alpha"
        (span,) = ask(adapter, text, {"q": {"type": "span", "preset": "entities"}})["spans"]["q"]
        assert (span["start"], span["end"], text[span["start"] : span["end"]]) == (4, 9, "alpha")


@pytest.mark.parametrize("prompt_first", [True, False])
class TestGliclass:
    @pytest.fixture
    def adapter(self, tmp_path: Path, prompt_first: bool) -> Adapter:
        return opened(build_gliclass(tmp_path, prompt_first=prompt_first))

    def test_a_set_is_independent_and_a_choice_sums_to_one(self, adapter: Adapter, ask: Ask) -> None:
        labels = {"law": None, "code": None}
        questions = {
            "s": {"type": "set", "instructions": "x", "criteria": labels},
            "t": {"type": "set", "instructions": "x", "criteria": labels, "threshold": 0.05},
            "c": choice("law", "math", "code"),
        }
        for alone in (True, False):
            block = ask(adapter, "law and math", questions, alone=alone)
            assert block["answers"]["s.law"]["noul"] == pytest.approx(sigmoid(2))
            assert block["answers"]["s.code"]["noul"] == pytest.approx(sigmoid(-2))
            assert block["sets"]["s"]["selected"] == ["law"]
            assert block["sets"]["t"]["selected"] == ["law", "code"]
            expected = softmax(2, 2, -2)
            assert list(block["answers"]["c"]["probabilities"].values()) == pytest.approx(expected)

    def test_noul_is_not_among_its_types(self, adapter: Adapter, ask: Ask) -> None:
        answer = ask(adapter, "x", {"q": {"type": "noul", "instructions": "law"}})["answers"]["q"]
        assert answer["error"] == "invalid_question"

    def test_text_cannot_add_a_label(self, adapter: Adapter) -> None:
        posed = read_questions({"q": choice("law", "math<<LABEL>>")})
        (row,) = adapter.plan("<<LABEL>> code <<SEP>>", [one.asked for one in posed.values()]).rows
        assert int((row.ids == 5).sum()) == 2
        assert int((row.ids == 6).sum()) == 1

    def test_windows(self, adapter: Adapter, ask: Ask) -> None:
        question = {"type": "set", "instructions": "x", "criteria": {"law": None}, "require_full_input": True}
        block = ask(adapter, "code " * 100 + "law", {"q": question}, alone=False)
        assert block["answers"]["q.law"]["noul"] == pytest.approx(sigmoid(2))
        assert block["sets"]["q"]["input_coverage"] == block["answers"]["q.law"]["input_coverage"] == "complete"

    def test_more_labels_than_the_model_takes(self, adapter: Adapter, ask: Ask) -> None:
        question = {"type": "set", "instructions": "x", "criteria": {f"l{n}": None for n in range(9)}}
        assert "at most 8 labels" in ask(adapter, "x", {"q": question})["answers"]["q"]["message"]


@pytest.mark.parametrize("form", ["span", "token", "token_first"])
class TestGliner:
    @pytest.fixture
    def adapter(self, tmp_path: Path, form: str) -> Adapter:
        return opened(build_gliner(tmp_path, mode=form[:5].rstrip("_"), scores_first=form == "token_first"))

    def find(self, ask: Ask, adapter: Adapter, text: str, labels: dict[str, Any], **more: Any) -> list[tuple[str, str]]:
        question = {"type": "span", "instructions": "where", "criteria": labels, **more}
        block = ask(adapter, text, {"q": question, "other": {**question, "criteria": {"beta": None}}}, alone=False)
        return [(span["label"], span["text"]) for span in block["spans"]["q"]]

    def test_spans_of_any_label(self, adapter: Adapter, ask: Ask) -> None:
        found = self.find(ask, adapter, "a red, alpha alpha met.", {"alpha": None, "COLOUR": "red"})
        assert found == [("COLOUR", "red"), ("alpha", "alpha alpha")]

    def test_keys_are_read_as_plain_words(self, adapter: Adapter, ask: Ask) -> None:
        assert self.find(ask, adapter, "the city", {"CITY": None}) == [("CITY", "city")]

    def test_the_numbers(self, adapter: Adapter, ask: Ask, form: str) -> None:
        question = {"type": "span", "instructions": "where", "criteria": {"alpha": None}}
        block = ask(adapter, "alpha alpha", {"q": question})
        (span,) = block["spans"]["q"]
        expected = sigmoid(3.5) if form == "span" else sigmoid(3)
        assert span["probability"] == pytest.approx(expected)
        assert block["answers"]["q"]["noul"] == pytest.approx(expected)
        assert ask(adapter, "red", {"q": question})["answers"]["q"]["noul"] == pytest.approx(sigmoid(-3))

    def test_a_threshold_of_its_own(self, adapter: Adapter, ask: Ask) -> None:
        assert self.find(ask, adapter, "alpha", {"alpha": None}, threshold=0.99) == []

    def test_windows_overlap_and_nothing_is_found_twice(self, adapter: Adapter, ask: Ask) -> None:
        text = "code " * 50 + "alpha " + "code " * 50 + "alpha"
        found = self.find(ask, adapter, text, {"alpha": None}, require_full_input=True)
        assert found == [("alpha", "alpha"), ("alpha", "alpha")]

    def test_every_word_is_in_a_window(self, adapter: Adapter, ask: Ask) -> None:
        for place in (0, 17, 18, 23, 24, 41, 59):
            words = ["code"] * 60
            words[place] = "alpha"
            assert self.find(ask, adapter, " ".join(words), {"alpha": None}) == [("alpha", "alpha")]

    def test_text_cannot_add_a_label(self, adapter: Adapter) -> None:
        posed = read_questions({"q": {"type": "span", "instructions": "x", "criteria": {"a <<ENT>> b": None}}})
        (row,) = adapter.plan("<<ENT>> red <<SEP>>", [one.asked for one in posed.values()]).rows
        assert int((row.ids == 5).sum()) == 1
        assert int((row.ids == 6).sum()) == 1

    def test_no_words_at_all(self, adapter: Adapter, ask: Ask) -> None:
        assert self.find(ask, adapter, "  ", {"alpha": None}) == []

    def test_offsets_are_code_points(self, adapter: Adapter, ask: Ask) -> None:
        question = {"type": "span", "instructions": "where", "criteria": {"alpha": None}}
        (span,) = ask(adapter, "\U0001f600 é alpha", {"q": question})["spans"]["q"]
        assert (span["start"], span["end"]) == (4, 9)


def test_an_output_that_is_not_finite_fails_its_question_only(tmp_path: Path) -> None:
    adapter = opened(build_marker_row(tmp_path))
    posed = read_questions({"a": choice("math", "law"), "b": choice("math", "law")})
    plan = adapter.plan("law", [one.asked for one in posed.values()])
    raw = adapter.run(plan.rows)
    raw[0] = {"logits": np.array([np.nan, 0.0], np.float32)}
    first, second = adapter.answer(plan, raw)
    assert getattr(first, "code", None) == "invalid_model_output"
    assert not hasattr(second, "code")
