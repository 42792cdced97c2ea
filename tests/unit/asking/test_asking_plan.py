import orjson
import pytest

from router.asking.plan import bind
from router.config.deployments import Dialect
from router.config.plan import StateKind
from router.questions import Question, QuestionType, Unknown, UnknownReason
from tests.unit.asking.asking_builders import (
    NO_SET,
    capabilities,
    choice,
    deployment,
    label_set,
    managed,
    noul,
    only_call,
    rule,
    stage,
    texts,
)

SYSTEM, TOOLS = StateKind.SYSTEM, StateKind.TOOLS


def test_every_question_about_one_state_travels_in_one_call() -> None:
    plan = stage(rule("a", noul("A?")), rule("b", choice("x", "y")))
    body = orjson.loads(only_call(plan, "hello").body(900))
    assert body == {
        "model": "m-served",
        "state": "hello",
        "questions": {
            "q0": {"type": "noul", "instructions": "A?"},
            "q1": {"type": "choice", "instructions": "Which one?", "criteria": {"x": None, "y": None}},
        },
        "options": {"deadline_ms": 900, "return_meta": True},
    }


def test_a_process_of_ours_is_not_asked_who_it_is() -> None:
    body = orjson.loads(only_call(stage(rule("a", noul()), on=[managed()])).body(900))
    assert body["options"] == {"deadline_ms": 900}


def test_a_plain_system_one_api_gets_one_state_a_call_and_no_extras() -> None:
    remote = deployment(dialect=Dialect.SYSTEMONE)
    plan = stage(rule("a", noul("A?")), rule("b", noul("B?"), state=SYSTEM), rule("c", noul("C?")), on=[remote])
    calls = bind(plan, texts(plan, user="u", system="s")).calls
    assert [[consumer.rule for consumer, _ in call.readers] for call in calls] == [["a", "c"], ["b"]]
    assert orjson.loads(calls[1].body(900)) == {
        "model": "m-served",
        "state": "s",
        "questions": {"q1": {"type": "noul", "instructions": "B?"}},
    }


def test_further_states_join_the_same_call() -> None:
    plan = stage(rule("a", noul("A?")), rule("b", noul("B?"), state=SYSTEM), rule("c", noul("A?"), state=TOOLS))
    body = orjson.loads(only_call(plan, user="u", system="s", tools="t").body(1))
    assert body["state"] == "u"
    assert list(body["questions"]) == ["q0"]
    assert body["states"] == {
        "s1": {"state": "s", "questions": {"q1": {"type": "noul", "instructions": "B?"}}},
        "s2": {"state": "t", "questions": {"q0": {"type": "noul", "instructions": "A?"}}},
    }


def test_equal_questions_about_equal_states_are_asked_once() -> None:
    plan = stage(rule("a", noul()), rule("b", noul()), rule("c", noul(), state=SYSTEM))
    call = only_call(plan, "the same")
    assert (len(call.parts), call.questions) == (1, 1)
    assert [(consumer.rule, part) for consumer, part in call.readers] == [("a", 0), ("b", 0), ("c", 0)]
    assert "states" not in orjson.loads(call.body(1))


def test_each_deployment_has_its_own_call() -> None:
    plan = stage(
        rule("a", noul(), "one"),
        rule("b", noul(), "two"),
        on=[deployment("one"), deployment("two"), deployment("idle")],
    )
    assert plan.states == (("one", StateKind.USER), ("two", StateKind.USER))
    assert [call.deployment for call in bind(plan, texts(plan)).calls] == ["one", "two"]


@pytest.mark.parametrize("blank", ["", " ", "\n\t "])
def test_nothing_to_read_is_not_asked(blank: str) -> None:
    plan = stage(rule("a", noul()), rule("b", noul(), state=SYSTEM))
    bound = bind(plan, texts(plan, user="u", system=blank))
    assert bound.unread == {"b": Unknown(UnknownReason.NO_TEXT)}
    assert [consumer.rule for consumer, _ in bound.calls[0].readers] == ["a"]
    assert bind(plan, texts(plan, blank)).calls == ()


def test_no_rule_makes_no_call() -> None:
    assert bind(stage(), {}).calls == ()


def test_a_set_becomes_one_noul_a_label_where_the_model_has_no_set() -> None:
    tools = noul('Which apply? Is "tools" one of them?')
    plan = stage(
        rule("needs", label_set("tools", "files")),
        rule("same", tools),
        on=[deployment(capabilities=capabilities(NO_SET))],
    )
    call = only_call(plan)
    questions = orjson.loads(call.body(1))["questions"]
    assert [question["type"] for question in questions.values()] == ["noul", "noul"]  # `same` shares one of them
    composition = call.readers[0][0].composition
    assert (composition.labels, composition.threshold) == (("tools", "files"), 0.5)


def test_a_composed_set_uses_the_threshold_that_was_written() -> None:
    plan = stage(rule("r", label_set("x", threshold=0.9)), on=[deployment(capabilities=capabilities(NO_SET))])
    call = only_call(plan)
    assert call.readers[0][0].composition.threshold == 0.9
    assert "threshold" not in orjson.loads(call.body(1))["questions"]["q0"]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (deployment(timeout_ms=None), 3.0),
        (deployment(timeout_ms=2000), 2.0),
        (deployment(timeout_ms=9000), 3.0),
        (managed(timeout_ms=2000), 3.0),  # bounds attached and remote models only
    ],
)
def test_a_call_waits_for_its_most_patient_rule_within_the_attempt(target: object, expected: float) -> None:
    plan = stage(rule("a", noul("A?"), timeout_ms=500), rule("b", noul("B?"), timeout_ms=3000), on=[target])  # type: ignore[list-item]
    assert only_call(plan).timeout_s == expected


def test_a_rule_that_is_not_asked_does_not_lengthen_the_call() -> None:
    plan = stage(rule("a", noul(), timeout_ms=500), rule("b", noul(), state=SYSTEM, timeout_ms=60_000))
    assert only_call(plan, user="u", system="").timeout_s == 0.5


def test_text_travels_unchanged_and_a_lone_surrogate_keeps_its_place() -> None:
    plan = stage(rule("a", noul()))
    for text in ('é"\\\n\u2028 😀', "\x00"):
        assert orjson.loads(only_call(plan, text).body(1))["state"] == text
    assert orjson.loads(only_call(plan, "a\ud800😀").body(1))["state"] == "a?😀"


def test_a_preset_expects_the_labels_of_the_card() -> None:
    known = capabilities(presets={"domains": QuestionType.CHOICE}, preset_labels={"domains": ("code", "other")})
    plan = stage(rule("r", Question(QuestionType.CHOICE, preset="domains")), on=[deployment(capabilities=known)])
    assert only_call(plan).parts[0].asked[0].labels == ("code", "other")


def test_an_unknown_deployment_is_an_error_of_the_caller() -> None:
    with pytest.raises(KeyError):
        stage(rule("a", noul(), "nowhere"))
