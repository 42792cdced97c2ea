from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from router.runtime.artifact import open_artifact
from router.runtime.asking import Failure
from router.runtime.body import read_questions
from router.runtime.engine import Engine
from router.runtime.errors import ArtifactError
from router.runtime.golden import check_golden
from router.runtime.model import load_model
from router.runtime.two_tower import TwoTower
from tests.support.artifacts import SCALE_A, SCALE_B, SPAN_A, SPAN_B, build_tiny_artifact, seal

Ask = Callable[..., dict[str, Any]]
TOPICS = {"type": "choice", "instructions": "which", "criteria": {"math": None, "law": None, "code": None}}


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


class TestExactAnswers:
    """On the tiny artifact, where every number can be worked out."""

    def test_choice(self, tiny: TwoTower, ask: Ask) -> None:
        answer = ask(tiny, "a question of law", {"q": TOPICS})["answers"]["q"]
        weight = math.exp(1 / 0.05)
        assert answer["choice"] == "law"
        assert answer["probabilities"]["law"] == pytest.approx(weight / (weight + 2))
        assert sum(answer["probabilities"].values()) == pytest.approx(1)
        top = max(answer["probabilities"].values())
        assert answer["confidence"] == pytest.approx((top - 1 / 3) / (2 / 3))

    def test_choice_reads_descriptions(self, tiny: TwoTower, ask: Ask) -> None:
        question = {"type": "choice", "instructions": "which", "criteria": {"x": "about math", "y": "about law"}}
        assert ask(tiny, "law", {"q": question})["answers"]["q"]["choice"] == "y"

    def test_equal_options_choose_the_first(self, tiny: TwoTower, ask: Ask) -> None:
        answer = ask(tiny, "nothing known", {"q": TOPICS})["answers"]["q"]
        assert (answer["choice"], answer["confidence"]) == ("math", pytest.approx(0, abs=1e-6))

    def test_noul(self, tiny: TwoTower, ask: Ask) -> None:
        question = {"type": "noul", "instructions": "is it about math"}
        answers = [ask(tiny, text, {"q": question})["answers"]["q"]["noul"] for text in ("math law", "law")]
        assert answers[0] == pytest.approx(sigmoid(SCALE_A * (1 / math.sqrt(2) - SCALE_B)))
        assert answers[1] == pytest.approx(sigmoid(-SCALE_A * SCALE_B))

    def test_a_described_false_side_counts_against_the_true_one(self, tiny: TwoTower, ask: Ask) -> None:
        question = {"type": "noul", "criteria": {"true": "math", "false": "law"}}
        math_, law = (ask(tiny, text, {"q": question})["answers"]["q"]["noul"] for text in ("math", "law"))
        assert math_ == pytest.approx(sigmoid(SCALE_A * (1 + 0.3 - SCALE_B)))
        assert law == pytest.approx(sigmoid(SCALE_A * (-0.3 - SCALE_B)), abs=1e-9)

    def test_only_a_false_side_is_turned_round(self, tiny: TwoTower, ask: Ask) -> None:
        question = {"type": "noul", "criteria": {"false": "law"}}
        assert ask(tiny, "law", {"q": question})["answers"]["q"]["noul"] < 0.01
        assert ask(tiny, "math", {"q": question})["answers"]["q"]["noul"] > 0.99

    def test_noul_with_one_side_described(self, tiny: TwoTower, ask: Ask) -> None:
        question = {"type": "noul", "criteria": {"true": "math"}}
        assert ask(tiny, "math", {"q": question})["answers"]["q"]["noul"] > 0.99

    def test_score_is_the_expected_level_with_its_legend(self, tiny: TwoTower, ask: Ask) -> None:
        question = {"type": "score", "instructions": "how hard", "criteria": ["easy", {"level": "medium"}, "hard"]}
        answer = ask(tiny, "hard", {"q": question})["answers"]["q"]
        assert answer["score"] == pytest.approx(2, abs=1e-6)
        assert answer["legend"] == {"0": "easy", "1": {"level": "medium"}, "2": "hard"}
        assert answer["score"] == pytest.approx(sum(int(k) * p for k, p in answer["probabilities"].items()))

    def test_set_selects_by_its_threshold(self, tiny: TwoTower, ask: Ask) -> None:
        question = {"type": "set", "instructions": "topics", "labels": [{"key": k} for k in ("law", "math", "code")]}
        block = ask(tiny, "math and law", {"q": question, "z": question | {"threshold": 0.0}})
        assert block["sets"]["q"]["selected"] == ["law", "math"]
        assert block["answers"]["q.code"] == {"type": "noul", "noul": pytest.approx(sigmoid(-8))}
        assert block["thresholds"] == {"q": 0.5, "z": 0.0}
        assert block["sets"]["z"]["selected"] == ["law", "math", "code"]
        assert "q" not in block["answers"]

    def test_free_span(self, tiny: TwoTower, ask: Ask) -> None:
        question = {"type": "span", "instructions": "where", "labels": [{"key": "law"}, {"key": "math"}]}
        block = ask(tiny, "😀 Law, é math math law", {"q": question})
        sure = sigmoid(SPAN_A * (1 - SPAN_B))
        found = [(s["label"], s["start"], s["end"], s["text"]) for s in block["spans"]["q"]]
        assert found == [("law", 2, 5, "Law"), ("math", 9, 18, "math math"), ("law", 19, 22, "law")]
        assert block["answers"]["q"] == {"type": "noul", "noul": pytest.approx(sure)}
        assert block["spans"]["q"][0]["probability"] == pytest.approx(sure)

    def test_free_span_above_everything_finds_nothing_but_keeps_the_word_probability(
        self, tiny: TwoTower, ask: Ask
    ) -> None:
        question = {"type": "span", "instructions": "where", "labels": [{"key": "law"}], "threshold": 1.0}
        block = ask(tiny, "law", {"q": question})
        assert block["spans"] == {"q": []}
        assert block["answers"]["q"]["noul"] > 0.99

    def test_preset_labels_add_up(self, tiny: TwoTower, ask: Ask) -> None:
        block = ask(tiny, "code", {"d": {"type": "choice", "preset": "domains"}})["answers"]["d"]
        assert block["choice"] == "computer science"
        assert set(block["probabilities"]) == {"computer science", "math", "law", "other"}
        assert ask(tiny, "jailbreak", {"j": {"type": "noul", "preset": "jailbreak"}})["answers"]["j"]["noul"] > 0.9


class TestReading:
    def test_a_needle_in_any_window_is_found(self, tiny: TwoTower, ask: Ask) -> None:
        questions = {
            "n": {"type": "noul", "instructions": "math"},
            "s": {"type": "span", "instructions": "where", "labels": [{"key": "math"}]},
            "set": {"type": "set", "instructions": "which", "labels": [{"key": "math"}]},
        }
        for place in (0, 31, 150, 299):
            words = ["filler"] * 300
            words[place] = "math"
            text = " ".join(words)
            block = ask(tiny, text, questions)
            assert block["answers"]["n"]["noul"] > 0.99
            assert block["sets"]["set"]["selected"] == ["math"]
            assert [(s["start"], s["text"]) for s in block["spans"]["s"]] == [(text.index("math"), "math")]

    def test_choice_over_windows_is_the_mean(self, tiny: TwoTower, ask: Ask) -> None:
        text = " ".join(["law"] + ["filler"] * 90 + ["math"] * 60)
        assert ask(tiny, text, {"q": TOPICS})["answers"]["q"]["choice"] == "math"

    def test_truncate_reads_the_beginning_and_says_so(self, tiny: TwoTower, ask: Ask) -> None:
        text = " ".join(["filler"] * 200 + ["math"])
        answer = ask(tiny, text, {"n": {"type": "noul", "instructions": "math", "overflow": "truncate"}})["answers"][
            "n"
        ]
        assert answer["noul"] < 0.01
        assert answer["input_coverage"] == "partial"

    def test_full_input_is_proved_or_refused(self, tiny: TwoTower, ask: Ask) -> None:
        question = {"type": "noul", "instructions": "math", "require_full_input": True}
        assert ask(tiny, "filler " * 400, {"n": question})["answers"]["n"]["input_coverage"] == "complete"
        assert ask(tiny, "filler " * 600, {"n": question})["answers"]["n"]["error"] == "max_length_exceeded"

    def test_text_past_the_maximum_is_reported_unread(self, tiny: TwoTower, ask: Ask) -> None:
        answer = ask(tiny, "filler " * 600 + "math", {"n": {"type": "noul", "instructions": "math"}})["answers"]["n"]
        assert answer["input_coverage"] == "partial"

    def test_a_model_that_rejects_long_text(self, tmp_path: Path, ask: Ask) -> None:
        artifact = open_artifact(str(build_tiny_artifact(tmp_path, long="reject")))
        adapter = TwoTower(artifact, Engine(artifact, "cpu"))
        answer = ask(adapter, "filler " * 70, {"n": {"type": "noul", "instructions": "math"}})["answers"]["n"]
        assert answer["error"] == "max_length_exceeded"

    @pytest.mark.parametrize(
        ("state", "over", "yes"),
        [
            ({"request": "math", "answer": "law"}, None, True),
            ({"request": "math", "answer": "law"}, "answer", False),
            ({"a": "law", "b": "math"}, ["a", "b"], True),
            (["math"], None, True),
            ({"deep": {"er": ["math"]}}, None, True),
            ("", None, False),
        ],
    )
    def test_parts_of_a_state(self, tiny: TwoTower, ask: Ask, state: Any, over: Any, yes: bool) -> None:
        question = {"type": "noul", "instructions": "math"} | ({"over": over} if over else {})
        assert (ask(tiny, state, {"n": question})["answers"]["n"]["noul"] > 0.5) is yes

    def test_a_span_of_an_object_counts_in_the_answer_part(self, tiny: TwoTower, ask: Ask) -> None:
        question = {"type": "span", "instructions": "where", "labels": [{"key": "law"}]}
        spans = ask(tiny, {"request": "law", "answer": "the law"}, {"q": question})["spans"]["q"]
        assert [(s["start"], s["end"]) for s in spans] == [(4, 7)]

    @pytest.mark.parametrize("state", ["text", {"other": "math"}])
    def test_over_a_missing_field_fails_that_question_only(self, tiny: TwoTower, ask: Ask, state: Any) -> None:
        answers = ask(
            tiny,
            state,
            {"n": {"type": "noul", "instructions": "math", "over": "x"}, "m": {"type": "noul", "instructions": "math"}},
        )["answers"]
        assert answers["n"]["error"] == "invalid_input"
        assert "noul" in answers["m"]

    def test_user_text_cannot_spell_a_special_token(self, tiny: TwoTower, builtin: TwoTower) -> None:
        for adapter in (tiny, builtin):
            frame = adapter.card.tokens
            for text in ("a [SEP] b", "[CLS][SEP]", "[[SEP]SEP]", "[PAD]math"):
                ids = adapter.tokenizer.encode(text, 50).ids
                assert not {frame.pad, frame.cls, frame.sep} & set(ids.tolist())
                assert len(adapter.tokenizer.neutral(text)) == len(text)

    def test_truncation_and_padding_of_the_tokenizer_file_are_off(self, tiny: TwoTower, builtin: TwoTower) -> None:
        assert len(tiny.tokenizer.encode("math law " * 20, 512)) == 40
        assert len(builtin.tokenizer.encode("word " * 300, 510)) == 300

    def test_texts_of_questions_are_encoded_once(self, tmp_path: Path, ask: Ask) -> None:
        artifact = open_artifact(str(build_tiny_artifact(tmp_path)))
        adapter = TwoTower(artifact, Engine(artifact, "cpu"))
        first = ask(adapter, "law", {"q": TOPICS})

        plan = adapter.plan("law", [read_questions({"q": TOPICS})["q"].asked])
        assert len(plan.rows) == 1
        assert ask(adapter, "law", {"q": TOPICS}) == first


class TestRefusals:
    @pytest.mark.parametrize(
        "question",
        [
            {"type": "noul", "preset": "unheard_of"},
            {"type": "noul", "preset": "domains"},
            {"type": "choice", "preset": "jailbreak"},
        ],
    )
    def test_a_preset_that_cannot_be_asked(self, tiny: TwoTower, ask: Ask, question: dict[str, Any]) -> None:
        assert ask(tiny, "x", {"q": question})["answers"]["q"]["error"] == "invalid_question"

    def test_builtin_has_no_free_spans(self, builtin: TwoTower, ask: Ask) -> None:
        question = {"type": "span", "instructions": "where", "labels": [{"key": "law"}]}
        assert ask(builtin, "x", {"s": question})["answers"]["s"]["error"] == "invalid_question"

    def test_a_model_without_native_set(self, tmp_path: Path, ask: Ask) -> None:
        artifact = open_artifact(str(build_tiny_artifact(tmp_path, types=("noul", "choice", "score"))))
        adapter = TwoTower(artifact, Engine(artifact, "cpu"))
        question = {"type": "set", "instructions": "which", "labels": [{"key": "law"}]}
        assert ask(adapter, "law", {"q": question})["answers"]["q"]["error"] == "invalid_question"

    def test_output_that_is_not_finite_fails_the_question(self, tiny: TwoTower) -> None:

        plan = tiny.plan("law", [read_questions({"q": {"type": "noul", "preset": "jailbreak"}})["q"].asked])
        raw = [{"preset_logits": np.full(6, np.nan, np.float32)}]
        (result,) = tiny.answer(plan, raw)
        assert isinstance(result, Failure)
        assert result.code == "invalid_model_output"

    def test_rows_that_were_not_computed_fail_the_questions_that_need_them(self, tiny_directory: Path) -> None:
        artifact = open_artifact(str(tiny_directory))
        adapter = TwoTower(artifact, Engine(artifact, "cpu"))
        posed = read_questions(
            {
                "preset": {"type": "noul", "preset": "jailbreak"},
                "law": {"type": "noul", "instructions": "law"},
                "math": {"type": "noul", "instructions": "math"},
                "none": {"type": "noul", "preset": "unheard_of"},
            }
        )

        def answered(missing: set[int]) -> list[str]:
            plan = adapter.plan("law and math", [one.asked for one in posed.values()])
            raw = [{} if place in missing else found for place, found in enumerate(adapter.run(plan.rows))]
            return [one.code.value if isinstance(one, Failure) else "answered" for one in adapter.answer(plan, raw)]

        late, bad = "deadline_exceeded", "invalid_question"
        assert answered({0, 1, 2}) == [late, late, late, bad]
        assert answered({2}) == ["answered", "answered", late, bad]
        assert answered({0}) == [late, late, late, bad], "one text is known already, and the state is not read"
        assert answered(set()) == ["answered"] * 3 + [bad]


class TestBuiltin:
    def test_golden_answers(self, builtin: TwoTower) -> None:
        check_golden(builtin)

    def test_personal_data_in_mixed_text(self, builtin: TwoTower, ask: Ask) -> None:
        text = "👩‍👩‍👧 Hi 😀 ich bin Dani Mu\u0308ller, 東京 office: mail dani.m@example.org or call +49 30 1234567."
        spans = ask(builtin, text, {"p": {"type": "span", "preset": "pii"}})["spans"]["p"]
        assert all(span["text"] == text[span["start"] : span["end"]] for span in spans)
        assert any(span["label"] == "EMAIL_ADDRESS" and span["text"].endswith("@example.org") for span in spans)
        assert any(span["label"] == "PERSON" and "Dani" in span["text"] for span in spans)

    def test_one_pass_answers_everything_about_a_state(self, builtin: TwoTower) -> None:

        presets = [p for p in builtin.card.presets.values() if p.pair is None]
        posed = read_questions({p.name: {"type": p.type.value, "preset": p.name} for p in presets})
        plan = builtin.plan("Book me a table for two.", [one.asked for one in posed.values()])
        assert len(plan.rows) == 1

    def test_alone_and_batched_are_the_same(self, builtin: TwoTower, tiny: TwoTower, ask: Ask) -> None:
        questions = {
            "c": {"type": "choice", "instructions": "team", "criteria": {"billing": "invoices", "tech": "bugs"}},
            "n": {"type": "noul", "instructions": "Is it about money?"},
        }
        extra = {"j": {"type": "noul", "preset": "jailbreak"}, "d": {"type": "choice", "preset": "domains"}}
        text = "My invoice is wrong and the app crashes. " * 6
        for adapter in (builtin, tiny):
            alone = ask(adapter, text, questions | extra)["answers"]
            adapter._texts._known.clear()
            batched = ask(adapter, text, questions | extra, alone=False)["answers"]
            for name in alone:
                for key, value in alone[name].items():
                    assert batched[name][key] == (
                        pytest.approx(value, abs=1e-4) if isinstance(value, float | dict) else value
                    )

    def test_long_text_is_read_to_its_end(self, builtin: TwoTower, ask: Ask) -> None:
        text = (
            "The committee met and discussed the budget of the library. " * 60 + "Write to anna.kowalska@example.com."
        )
        block = ask(builtin, text, {"p": {"type": "span", "preset": "pii"}}, alone=False)
        last = block["spans"]["p"][-1]
        assert last["label"] == "EMAIL_ADDRESS"
        assert text[last["start"] : last["end"]] == last["text"]


@pytest.mark.parametrize(
    "golden",
    [
        {"state": "law", "questions": {"q": TOPICS}, "answers": {"q": {"choice": "math"}}},
        {"state": "law", "questions": {"q": {"type": "noul", "instructions": "law"}}, "answers": {"q": {"noul": 0.5}}},
        {"state": "law", "heads": {"jailbreak": [0.0, 1.0]}},
        {"state": "law", "heads": {"unheard_of": [0.0, 1.0]}},
        {"state": "law", "spans": []},
        {"state": "law", "questions": {"q": {"type": "nothing"}}, "answers": {"q": {"noul": 0.5}}},
    ],
)
def test_a_golden_answer_that_differs_is_named(tmp_path: Path, golden: dict[str, Any]) -> None:

    directory = build_tiny_artifact(tmp_path, presets=True, card={"golden": [golden]})
    seal(directory)
    with pytest.raises(ArtifactError, match=r"decision\.json: golden\[0\]"):
        load_model(str(directory), "cpu")


class TestPairs:
    """Presets that compare two texts, on the embedded model."""

    RELEVANT: ClassVar = {"type": "noul", "preset": "relevance"}
    SAME: ClassVar = {"type": "noul", "preset": "same_request"}

    def test_both_texts_count(self, builtin: TwoTower, ask: Ask) -> None:
        request = "How do I sort a list in Python?"
        documents = ("Use sorted() or list.sort() to sort a list.", "The Eiffel tower is in Paris.")
        asked = [
            ask(builtin, {"request": request, "document": text}, {"q": self.RELEVANT})["answers"]["q"]["noul"]
            for text in documents
        ]
        other = ask(builtin, {"request": "Where is the Eiffel tower?", "document": documents[1]}, {"q": self.RELEVANT})
        assert asked[0] > 0.9
        assert asked[1] < 0.1
        assert other["answers"]["q"]["noul"] > 0.9

    def test_the_same_request_is_the_same_either_way_round(self, builtin: TwoTower, ask: Ask) -> None:
        texts = ("Who wrote Hamlet?", "who is the author of hamlet")
        one, two = (
            ask(builtin, {"request": a, "candidate": b}, {"q": self.SAME})["answers"]["q"]["noul"]
            for a, b in (texts, reversed(texts))
        )
        assert one == pytest.approx(two, abs=0.02)
        assert one > 0.5

    def test_other_names_of_the_same_parts(self, builtin: TwoTower, ask: Ask) -> None:
        names = [("request", "document"), ("user", "context"), ("prompt", "source")]
        states = [{first: "Where is the tower?", second: "The tower is in Paris."} for first, second in names]
        answers = [ask(builtin, state, {"q": self.RELEVANT})["answers"]["q"] for state in states]
        assert answers[0] == answers[1] == answers[2]
        over = {**self.RELEVANT, "over": ["a", "b"]}
        state = {"a": "Where is the tower?", "b": "The tower is in Paris."}
        assert ask(builtin, state, {"q": over})["answers"]["q"] == answers[0]

    @pytest.mark.parametrize("state", ["x", {"request": "x"}, {"document": "x"}, ["request", "document"]])
    def test_a_text_that_is_not_there(self, builtin: TwoTower, ask: Ask, state: Any) -> None:
        answer = ask(builtin, state, {"q": self.RELEVANT})["answers"]["q"]
        assert answer["error"] == "invalid_input"
        assert "compares request and document" in answer["message"]

    def test_a_long_text_is_read_as_far_as_it_fits(self, builtin: TwoTower, ask: Ask) -> None:
        state = {"request": "Where is the tower?", "document": "The tower is in Paris. " * 200}
        assert ask(builtin, state, {"q": self.RELEVANT})["answers"]["q"]["input_coverage"] == "partial"
        full = {**self.RELEVANT, "require_full_input": True}
        assert ask(builtin, state, {"q": full})["answers"]["q"]["error"] == "max_length_exceeded"
