"""The presets of the embedded model that have rules: spans, whether there are any, and who says so."""

from __future__ import annotations

from typing import Any

import pytest

from router.runtime.batch_body import read_batch
from router.runtime.body import read_questions
from router.runtime.inquiry import read_systemone
from router.runtime.model import Outcome
from router.runtime.two_tower import TwoTower
from tests.unit.runtime.conftest import Ask

WHERE = {"where": {"type": "span", "preset": "pii"}}
ANY = {"any": {"type": "noul", "preset": "pii_present"}}
TEXT = "I am Anna Kowalska, refund me to DE89 3704 0044 0532 0130 00."
FILLER = "The committee met and discussed the budget of the library. "


def outcome(adapter: TwoTower, state: str) -> Outcome:
    posed = read_questions(WHERE)
    plan = adapter.plan(state, [one.asked for one in posed.values()])
    return Outcome(dict(zip(posed, adapter.answer(plan, adapter.run(plan.rows)), strict=True)), plan.input_tokens)


def told(span: dict[str, Any]) -> tuple[str, ...]:
    return tuple(span[key] for key in ("label", "source", "rule") if key in span)


def test_spans_say_their_source_when_it_is_asked_for(builtin: TwoTower) -> None:
    body = {"model": "m", "state": TEXT, "questions": WHERE, "options": {"return_meta": True}}
    content = read_systemone(body, 8).content("m", [outcome(builtin, TEXT)])
    assert [told(span) for span in content["spans"]["where"]] == [("PERSON", "model"), ("IBAN_CODE", "rule", "iban")]


def test_spans_of_named_states_and_batches_too(builtin: TwoTower) -> None:
    options = {"return_meta": True}
    body = {"model": "m", "states": {"a": {"state": TEXT, "questions": WHERE}}, "options": options}
    content = read_systemone(body, 8).content("m", [outcome(builtin, TEXT)])
    assert told(content["states"]["a"]["spans"]["where"][1]) == ("IBAN_CODE", "rule", "iban")
    batch = {"model": "m", "states": [{"id": "a", "state": TEXT}], "questions": WHERE, "options": options}
    content = read_batch(batch, 8).content("m", [outcome(builtin, TEXT)])
    assert told(content["results"][0]["spans"]["where"][1]) == ("IBAN_CODE", "rule", "iban")


def test_spans_have_no_further_fields_otherwise(builtin: TwoTower) -> None:
    content = read_systemone({"model": "m", "state": TEXT, "questions": WHERE}, 8).content(
        "m", [outcome(builtin, TEXT)]
    )
    assert [sorted(span) for span in content["spans"]["where"]] == [
        ["end", "label", "probability", "start", "text"]
    ] * 2


def test_what_rules_find_is_certain_and_what_the_model_finds_as_likely_as_it_says(builtin: TwoTower, ask: Ask) -> None:
    block = ask(builtin, TEXT, WHERE)
    person, account = block["spans"]["where"]
    assert 0.5 <= person["probability"] < 1.0
    assert account["probability"] == 1.0
    assert block["answers"]["where"]["noul"] == 1.0


@pytest.mark.parametrize(
    "text", ["Refund me to DE89 3704 0044 0532 0130 00.", "DE89370400440532013000", FILLER * 80 + TEXT]
)
def test_present_where_a_rule_fires(builtin: TwoTower, ask: Ask, text: str) -> None:
    assert ask(builtin, text, ANY)["answers"]["any"]["noul"] == 1.0


def test_present_where_only_the_model_sees_a_person(builtin: TwoTower, ask: Ask) -> None:
    assert ask(builtin, "Order 4155550134 is that of Maria Lopez from Madrid.", ANY)["answers"]["any"]["noul"] > 0.5


def test_an_answer_does_not_depend_on_what_else_is_asked(builtin: TwoTower, ask: Ask) -> None:
    for text in (TEXT, "created_at 1755302400", "Hello there."):
        both = ask(builtin, text, WHERE | ANY)
        alone = ask(builtin, text, WHERE)
        assert both["spans"]["where"] == alone["spans"]["where"]
        assert both["answers"]["any"]["noul"] == pytest.approx(
            ask(builtin, text, ANY)["answers"]["any"]["noul"], abs=1e-6
        )


def test_a_long_text_is_read_by_rules_as_one(builtin: TwoTower, ask: Ask) -> None:
    """Windows of the graph cut a number, rules do not."""
    for shift in range(0, 40, 8):
        text = FILLER * 48 + "x " * shift + "Pay 4539 5787 6362 1486 now. " + FILLER * 12
        spans = ask(builtin, text, WHERE)["spans"]["where"]
        assert [(span["label"], span["text"]) for span in spans] == [("CREDIT_CARD", "4539 5787 6362 1486")]


def test_what_was_not_read_is_not_found(builtin: TwoTower, ask: Ask) -> None:
    text = FILLER * 120 + "Pay 4539 5787 6362 1486 now."
    block = ask(builtin, text, {"where": {"type": "span", "preset": "pii", "overflow": "truncate"}})
    assert block["spans"]["where"] == []


def test_a_threshold_leaves_what_rules_find(builtin: TwoTower, ask: Ask) -> None:
    spans = ask(builtin, TEXT, {"where": {"type": "span", "preset": "pii", "threshold": 1.0}})["spans"]["where"]
    assert [span["label"] for span in spans] == ["IBAN_CODE"]


def test_spans_of_the_model_are_whole_words(builtin: TwoTower, ask: Ask) -> None:
    text = "Ask Przemysława Brzęczyszczykiewicz or Nguyễn Thị Minh Khai in Łękołody."
    for span in ask(builtin, text, WHERE)["spans"]["where"]:
        start, end = span["start"], span["end"]
        assert start == 0 or not (text[start - 1].isalnum() and text[start].isalnum())
        assert end == len(text) or not (text[end - 1].isalnum() and text[end].isalnum())
