"""Selection, failure policies and traces on small recipes."""

from __future__ import annotations

import pytest

from router.config.plan import Decision, Recipe
from router.config.projections import BandMapping, Output, Score, ScoreInput
from router.deciding.engine import Outcome, decide, prepare
from router.deciding.kleene import Truth
from router.questions import (
    Answer,
    ChoiceAnswer,
    Predicate,
    QuestionType,
    ScoreAnswer,
    SetAnswer,
    Span,
    SpanAnswer,
    UnknownReason,
)
from tests.support.recipes import all_of, any_of, band, decision, not_, nouls, on, question, readings, recipe

DEFAULT = decision("default", all_of())


def outcome(made: Recipe, **answers: float | Answer) -> Outcome:
    return decide(prepare(made), readings(made, answers))


def explained(made: Recipe, **answers: float | Answer) -> Outcome:
    return decide(prepare(made), readings(made, answers), trace=True)


def selected(made: Recipe, **answers: float | Answer) -> str | None:
    chosen = outcome(made, **answers).selected
    return chosen.name if chosen else None


# The documents' first recipe: a choice with a label and a yes/no question, both needed.
HARD_CODE = recipe(
    (
        question("needs_reasoning", QuestionType.NOUL, predicate=Predicate(gte=0.7)),
        question("request_kind", QuestionType.CHOICE, "code", "math", "chat"),
    ),
    decision("hard-code", all_of(on("request_kind", "code"), on("needs_reasoning")), priority=200),
    DEFAULT,
)
CODE = ChoiceAnswer("code", {"code": 0.6, "math": 0.3, "chat": 0.1}, 0.6)
CHAT = ChoiceAnswer("chat", {"code": 0.1, "math": 0.3, "chat": 0.6}, 0.6)


def test_hard_code() -> None:
    result = outcome(HARD_CODE, needs_reasoning=0.8, request_kind=CODE)
    assert result.selected is HARD_CODE.decisions[0]
    assert result.confidence == pytest.approx(0.7)
    assert result.matched_rules == ("needs_reasoning", "request_kind")
    assert (result.applied, result.failed, result.traces) == ((), (), ())


@pytest.mark.parametrize(
    "answers", [{"needs_reasoning": 0.69, "request_kind": CODE}, {"needs_reasoning": 0.8, "request_kind": CHAT}, {}]
)
def test_hard_code_falls_to_the_default(answers: dict[str, float | Answer]) -> None:
    result = outcome(HARD_CODE, **answers)
    assert result.selected is DEFAULT
    assert result.confidence == 0.0


def test_a_condition_predicate_reads_the_label_and_nothing_else() -> None:
    questions = (question("kind", QuestionType.CHOICE, "code", "chat", predicate=Predicate(gte=0.95)),)
    made = recipe(questions, decision("maybe-code", on("kind", "code", Predicate(gte=0.25))))
    result = outcome(made, kind=ChoiceAnswer("chat", {"code": 0.3, "chat": 0.7}, 0.7))
    assert result.selected is made.decisions[0]
    assert result.confidence == 1.0
    assert result.matched_rules == ()


def test_set_span_and_score_conditions() -> None:
    made = recipe(
        (
            question("topics", QuestionType.SET, "billing", "shipping"),
            question("ids", QuestionType.SPAN, "account"),
            question("level", QuestionType.SCORE, "0", "1", "2", predicate=Predicate(gte=1.5)),
        ),
        decision("all", all_of(on("topics", "billing"), on("ids", "account"), on("level")), priority=3),
        decision("no-ids", on("ids", "account", Predicate(lt=0.1)), priority=2),
    )
    billing = SetAnswer(frozenset({"billing"}), {"billing": 0.6, "shipping": 0.9})
    found = SpanAnswer((Span("account", 0, 4, 0.8),), 0.9)
    hard = ScoreAnswer(1.8, (0.0, 0.2, 0.8), 0.8)
    assert outcome(made, topics=billing, ids=found, level=hard).confidence == pytest.approx((0.6 + 0.8 + 1.0) / 3)
    assert selected(made, topics=billing, ids=SpanAnswer((), 0.1), level=hard) == "no-ids"
    assert selected(made, topics=billing, ids=found) is None


def test_on_error_resolves_its_condition_before_any_operator() -> None:
    for on_error, name in (("match", "d"), ("no_match", None)):
        made = recipe(nouls("a"), decision("d", on("a", on_error=on_error), on_unknown="fail_request"))  # type: ignore[arg-type]
        assert selected(made) == name
        assert outcome(made).failed == ()
    made = recipe(nouls("a"), decision("d", not_(on("a", on_error="no_match"))))
    assert selected(made) == "d"
    assert selected(made, a=0.9) is None


@pytest.mark.parametrize(("policy", "name"), [("match", "d"), ("no_match", "default")])
def test_on_unknown(policy: str, name: str) -> None:
    made = recipe(nouls("a"), decision("d", not_(on("a")), on_unknown=policy), DEFAULT)  # type: ignore[arg-type]
    result = outcome(made)
    assert result.selected is not None
    assert result.selected.name == name
    assert result.applied == (("d",) if policy == "match" else ())
    assert result.confidence == (1.0 if policy == "match" else 0.0)


def test_fail_request_fails_over_a_catch_all_and_over_nothing() -> None:
    doubtful = decision("guarded", on("a"), on_unknown="fail_request")
    for made in (recipe(nouls("a"), doubtful), recipe(nouls("a"), doubtful, DEFAULT)):
        result = outcome(made)
        assert (result.selected, result.confidence, result.failed) == (None, None, ("guarded",))
        assert outcome(made, a=0.1).failed == ()


@pytest.mark.parametrize(
    ("guarded", "fails"),
    [
        ({"priority": 5}, False),
        ({"priority": 20}, True),
        ({"priority": 10}, True),
        ({"priority": 99, "tier": 1}, False),
    ],
)
def test_fail_request_only_while_its_unknown_could_change_the_selection(guarded: dict[str, int], fails: bool) -> None:
    made = recipe(
        nouls("a", "b"),
        decision("sure", on("b"), priority=10),
        decision("zz-guarded", on("a"), on_unknown="fail_request", **guarded),
    )
    result = outcome(made, b=0.9)
    assert result.failed == (("zz-guarded",) if fails else ())
    assert (result.selected is None) is fails


def test_fail_request_asks_whether_confidences_would_be_compared() -> None:
    # The selected decision is unscored, so equal priorities go by name and "zz" cannot win any more.
    sure = decision("sure", on("b", predicate=Predicate(gte=0.5)), priority=10)
    for name, fails in (("zz", False), ("aa", True)):
        made = recipe(nouls("a", "b"), sure, decision(name, on("a"), priority=10, on_unknown="fail_request"))
        assert bool(outcome(made, b=0.9).failed) is fails


def test_fail_request_sees_that_a_match_would_reorder_the_others() -> None:
    made = recipe(
        nouls("a", "b", "c"),
        decision("b-better", on("b"), priority=1),
        decision("a-first-by-name", on("a"), priority=1),
        decision("z-low", on("c", predicate=Predicate(gte=0.5)), priority=0, on_unknown="fail_request"),
    )
    # With "z-low" unscored among them the others could not be compared by confidence, and the name would decide.
    assert outcome(made, a=0.6, b=0.9).failed == ("z-low",)
    assert selected(made, a=0.6, b=0.9, c=0.9) == "a-first-by-name"


def _ranked(strategy: str, *decisions: Decision, **answers: float) -> str | None:
    made = recipe(nouls("a", "b", "c"), *decisions, strategy=strategy)  # type: ignore[arg-type]
    return selected(made, **answers)


def test_priority_strategy() -> None:
    high, low = decision("high", on("a"), priority=2), decision("low", on("b"), priority=1)
    assert _ranked("priority", low, high, a=0.6, b=0.9) == "high"
    assert _ranked("confidence", low, high, a=0.6, b=0.9) == "low"
    assert _ranked("confidence", low, high, a=0.7, b=0.7) == "high"


def test_equal_priorities_go_by_confidence_then_name() -> None:
    one, two = decision("one", on("a")), decision("two", on("b"))
    assert _ranked("priority", one, two, a=0.6, b=0.9) == "two"
    assert _ranked("priority", two, one, a=0.9, b=0.9) == "one"


def test_unscored_matches_make_confidences_incomparable() -> None:
    one = decision("one", on("a"), priority=1)
    two = decision("two", on("b"), priority=2)
    unscored = decision("three", not_(on("c")), priority=0)
    assert _ranked("confidence", one, two, a=0.9, b=0.6) == "one"
    assert _ranked("confidence", one, two, unscored, a=0.9, b=0.6, c=0.1) == "two"


def test_a_lower_tier_wins_outright_and_only_its_own_confidences_count() -> None:
    first = decision("first", on("a"), priority=0, tier=1)
    second = decision("second", on("b"), priority=9, tier=2)
    assert _ranked("priority", second, first, a=0.5, b=0.99) == "first"
    assert _ranked("confidence", second, first, a=0.5, b=0.99) == "first"
    unscored = decision("elsewhere", not_(on("c")), tier=2)
    other = decision("other", on("b"), priority=-1, tier=1)
    assert _ranked("confidence", first, other, unscored, a=0.5, b=0.99, c=0.0) == "other"


def test_catch_alls_rank_after_every_real_match() -> None:
    catch_all = decision("catch-all", all_of(), priority=999)
    real = decision("real", on("a"), priority=0, tier=3)
    assert _ranked("priority", catch_all, real, a=0.5) == "real"
    assert _ranked("confidence", catch_all, real, a=0.5) == "real"
    assert _ranked("priority", catch_all, decision("catch-b", all_of(), priority=1000)) == "catch-b"


def _effort() -> Recipe:
    questions = (
        question("difficulty", QuestionType.SCORE, "0", "1", "2", "3", predicate=Predicate(gte=2)),
        *nouls("a"),
    )
    inputs = (
        ScoreInput("systemone", "difficulty", None, 0.3, "raw", 1.0, 0.0),
        ScoreInput("systemone", "a", None, 0.4, "raw", 1.0, 0.0),
    )
    mapping = BandMapping("bands", "effort", "threshold_bands", 12.0, (Output("effort_high", Predicate(gte=0.9)),))
    decisions = (decision("deliberate", all_of(band("effort_high")), priority=200), DEFAULT)
    return Recipe("r", "priority", questions, (Score("effort", inputs),), (mapping,), decisions)


def test_projection_conditions() -> None:
    made = _effort()
    hard = ScoreAnswer(3.0, (0.0, 0.0, 0.0, 1.0), 1.0)
    assert selected(made, difficulty=hard, a=0.9) == "deliberate"
    assert selected(made, difficulty=hard) == "deliberate"
    assert selected(made, a=0.9) == "default"
    result = explained(made, a=0.9)
    trace = result.traces[0]
    assert (trace.truth, trace.policy, trace.matched) == (Truth.UNKNOWN, "no_match", False)
    assert result.projected.scores["effort"].low == pytest.approx(0.36)
    known = explained(made, difficulty=hard, a=0.5).traces[0].root.children[0]
    assert (known.node, known.name) == ("projection", "effort_high")
    assert known.value == pytest.approx(1.1)


def test_traces_explain_every_decision() -> None:
    made = recipe(
        nouls("a", "b"),
        decision("top", all_of(on("a"), any_of(on("b"), not_(on("a")))), priority=2, on_unknown="match"),
        decision("failing", all_of(on("b"), on("a")), priority=3, on_unknown="fail_request"),
        DEFAULT,
    )
    top, failing, default = explained(made, a=0.8).traces
    assert (top.truth, top.policy, top.matched, top.confidence, top.selected) == (
        Truth.UNKNOWN,
        "match",
        True,
        1.0,
        False,
    )
    assert (failing.policy, failing.matched, failing.fails) == ("fail_request", False, True)
    assert (default.truth, default.policy, default.matched, default.root.children) == (Truth.TRUE, None, True, ())
    known, either = top.root.children
    assert (known.node, known.truth, known.value, known.scored) == ("systemone", Truth.TRUE, 0.8, True)
    assert [child.truth.value for child in either.children] == ["unknown", "false"]
    assert either.children[0].reason is UnknownReason.TIMEOUT
    # The operand that evaluation need not look at is in the trace all the same.
    assert [child.truth.value for child in failing.root.children] == ["unknown", "true"]


def test_a_trace_marks_what_a_condition_policy_stands_for() -> None:
    made = recipe(nouls("a"), decision("d", on("a", on_error="match")))
    root = explained(made).traces[0].root
    assert (root.truth, root.on_error, root.scored, root.reason) == (Truth.TRUE, True, False, UnknownReason.TIMEOUT)
    assert decide(prepare(made), {}, trace=True).traces[0].root.reason is UnknownReason.NOT_ASKED


def test_a_label_missing_from_a_set_answer_is_unknown() -> None:
    made = recipe((question("s", QuestionType.SET, "x", "y"),), decision("d", on("s", "y"), on_unknown="match"))
    result = explained(made, s=SetAnswer(frozenset(), {"x": 0.1}))
    assert result.applied == ("d",)
    assert result.traces[0].root.reason is UnknownReason.INVALID_ANSWER


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (on("nobody"), "'nobody', which the recipe does not ask"),
        (on("a", "label"), "label to the rule 'a'"),
        (band("nobody"), "'nobody', which no mapping"),
    ],
)
def test_dangling_conditions_are_refused_when_prepared(rule: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        prepare(recipe(nouls("a"), decision("d", rule)))  # type: ignore[arg-type]
