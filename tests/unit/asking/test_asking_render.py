import pytest

from router.asking.render import as_asked, must_compose, noul_for_label, render
from router.questions import Option, Question, QuestionType, SpanHead
from tests.unit.asking.asking_builders import NO_SET, capabilities, choice, label_set, noul, score, span

DOMAINS = Question(QuestionType.CHOICE, "What is it about?", (Option("code"), Option("math")), preset="domains")
KNOWS = capabilities(presets={"domains": QuestionType.CHOICE})


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (noul("Is it code?"), {"type": "noul", "instructions": "Is it code?"}),
        (
            noul("Is it?", options=(Option("true", "it is"),)),
            {"type": "noul", "instructions": "Is it?", "criteria": {"true": "it is"}},
        ),
        (
            Question(QuestionType.CHOICE, "Which?", (Option("a", "first"), Option("b"))),
            {"type": "choice", "instructions": "Which?", "criteria": {"a": "first", "b": None}},
        ),
        (score("easy", "hard"), {"type": "score", "instructions": "How hard?", "criteria": ["easy", "hard"]}),
        (
            label_set("x", threshold=0.8),
            {"type": "set", "instructions": "Which apply?", "criteria": {"x": None}, "threshold": 0.8},
        ),
        (
            span("id", head=SpanHead.ROUTER),
            {"type": "span", "instructions": "Where?", "criteria": {"id": None}, "head": "router"},
        ),
        (Question(QuestionType.NOUL, preset="jailbreak"), {"type": "noul", "preset": "jailbreak"}),
    ],
)
def test_a_question_is_written_in_the_base_dialect(question: Question, expected: dict[str, object]) -> None:
    assert render(question) == expected


def test_a_preset_the_model_defines_is_asked_by_name_alone() -> None:
    assert render(as_asked(DOMAINS, KNOWS)) == {"type": "choice", "preset": "domains"}


@pytest.mark.parametrize("known", [None, capabilities()])
def test_a_preset_the_model_may_not_define_is_asked_as_its_public_text(known: object) -> None:
    assert render(as_asked(DOMAINS, known)) == {  # type: ignore[arg-type]
        "type": "choice",
        "instructions": "What is it about?",
        "criteria": {"code": None, "math": None},
    }


def test_a_preset_without_text_is_always_asked_by_name() -> None:
    bare = Question(QuestionType.NOUL, preset="house_rule")
    assert render(as_asked(bare, None)) == {"type": "noul", "preset": "house_rule"}


def test_what_a_type_does_not_read_keeps_no_questions_apart() -> None:
    assert as_asked(noul(threshold=0.9), None) == noul()
    assert as_asked(label_set("x", head=SpanHead.BROAD), None) == label_set("x")


@pytest.mark.parametrize(
    ("question", "known", "composed"),
    [
        (label_set("x"), capabilities(NO_SET), True),
        (label_set("x"), capabilities(), False),
        (label_set("x"), None, False),
        (Question(QuestionType.SET, preset="hazard"), capabilities(NO_SET), False),
        (choice("a", "b"), capabilities(NO_SET), False),
    ],
)
def test_only_a_set_that_the_model_lacks_is_composed(question: Question, known: object, composed: bool) -> None:
    assert must_compose(question, known) is composed  # type: ignore[arg-type]


def test_a_label_becomes_a_plain_yes_or_no_question() -> None:
    topics = Question(QuestionType.SET, "Which topics does the request mention?", (Option("billing", "money matters"),))
    assert noul_for_label(topics, topics.options[0]).instructions == (
        'Which topics does the request mention? Is "billing" (money matters) one of them?'
    )
    assert noul_for_label(Question(QuestionType.SET), Option("x")).instructions == 'Does "x" apply?'


def test_a_similarity_brings_its_texts_in_order() -> None:
    question = Question(QuestionType.SIMILARITY, options=(Option("0", "b"), Option("1", "a")))
    assert render(as_asked(question, None)) == {"type": "similarity", "candidates": ["b", "a"]}
