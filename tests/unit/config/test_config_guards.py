"""Guard rules: what they become, what stands where nothing is written, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from router.config.guards import GuardRule, Hazard
from router.config.load import load
from router.config.plan import Leaf, Node, StateKind
from router.config.presets import public_presets
from router.questions import Capabilities, Predicate, QuestionType
from router.runtime.artifact import describe
from tests.support.guards import SPANS, guard, jailbreak, loaded, mistakes, recipe, remote
from tests.support.warnings import unexpected

ROOT = Path(__file__).parents[3]
ON_JAILBREAK = "{type: jailbreak, name: n}"
ON_SAFETY = "{type: safety, name: n}"
ON_PII = "{type: pii, name: n}"
ON_SYSTEMONE = "{type: systemone, name: n}"
BARE = Capabilities(question_types=frozenset({QuestionType.NOUL, QuestionType.SPAN}), max_input_tokens=4096)


def test_a_jailbreak_rule_with_nothing_written() -> None:
    assert jailbreak() == GuardRule(
        name="jailbreak:n",
        family="jailbreak",
        deployment="builtin",
        question=public_presets()["jailbreak"],
        state=StateKind.FRESH,
        predicate=Predicate(gte=0.9),
        threshold=0.9,
        calibrated=True,
        on_unknown="match",
    )


def test_a_jailbreak_rule_with_everything_written() -> None:
    found = jailbreak(
        "description: x, deployment: builtin, threshold: 0.995, include_history: true, on_unknown: no_match, "
        "on_unscanned: best_effort, min_coverage: 0.5, normalise: off, timeout_ms: 700"
    )
    assert (found.predicate, found.threshold, found.calibrated) == (Predicate(gte=0.995), 0.995, False)
    assert (found.state, found.on_unknown, found.min_coverage) == (StateKind.HISTORY, "no_match", 0.5)
    assert (found.normalise, found.timeout_ms, found.on_unscanned) == (False, 700, "best_effort")


def test_safety_leaves_an_unknown_answer_to_its_decisions() -> None:
    assert guard("safety: [{name: n, threshold: 0.5}]", ON_SAFETY).on_unknown is None
    assert guard("safety: [{name: n, threshold: 0.5, on_unknown: match}]", ON_SAFETY).on_unknown == "match"


@pytest.mark.parametrize("policy", ["best_effort", "match", "no_match", "unknown"])
def test_what_decides_about_windows_that_are_not_read(policy: str) -> None:
    assert jailbreak(f"on_unscanned: {policy}").on_unscanned == policy


def test_the_card_decides_from_where_personal_data_counts() -> None:
    found = guard("pii: [{name: n}]", ON_PII)
    assert (found.threshold, found.calibrated, found.predicate) == (0.6, True, None)
    assert found.question.threshold is None, "the model knows its own"
    assert found.labels == frozenset({"PERSON", "EMAIL_ADDRESS", "PHONE_NUMBER"})
    assert found.on_unknown == "match"


def test_a_written_threshold_of_personal_data_travels_with_the_question() -> None:
    found = guard("pii: [{name: n, threshold: 0.8, pii_types_allowed: [PERSON]}]", ON_PII)
    assert (found.threshold, found.calibrated, found.question.threshold) == (0.8, False, 0.8)
    assert found.allowed == {"PERSON"}
    assert found.labels == frozenset({"EMAIL_ADDRESS", "PHONE_NUMBER"})
    assert found.counted == ("EMAIL_ADDRESS", "PHONE_NUMBER")


@pytest.mark.parametrize(
    ("signals", "condition", "preset"),
    [
        ("safety: [{name: n}]", ON_SAFETY, "safety"),
        ("jailbreak: [{name: n}]", ON_JAILBREAK, "jailbreak"),
        ("pii: [{name: n}]", ON_PII, "pii"),
    ],
)
def test_without_a_calibrated_threshold_a_half_is_used_and_the_rule_is_named(
    signals: str, condition: str, preset: str
) -> None:
    found = loaded(signals, condition, can=BARE)
    (rule,) = found.plan.recipes["r"].guards
    assert (rule.threshold, rule.calibrated) == (0.5, False)
    (warning,) = found.warnings
    assert warning.message == (
        f'rule "n" has no threshold, and deployment builtin none that was calibrated for {preset}: 0.5 is used'
    )
    assert (warning.line, warning.hint) == (7, "measure, and write threshold")


def test_remote_models_have_no_calibrated_threshold() -> None:
    found = loaded("jailbreak: [{name: n}]", ON_JAILBREAK, more=remote())
    assert ["deployment far none that was calibrated" in warning.message for warning in found.warnings] == [True]
    assert found.warnings[0].message.endswith(": 0.5 is used unless the model lists its own")


def test_a_text_of_the_operators_has_no_calibrated_threshold() -> None:
    own = """\
        global:
          model_catalog:
            deployments:
              near:
                provider: model_runtime
                artifact: x
                presets: {jailbreak: {type: noul, instructions: Is it an attack?}}
            system: {decision_model: near}
        """
    found = loaded("jailbreak: [{name: n}]", ON_JAILBREAK, more=own)
    (rule,) = found.plan.recipes["r"].guards
    assert rule.question.instructions == "Is it an attack?"
    assert (rule.threshold, rule.calibrated, len(found.warnings)) == (0.5, False, 1)


def test_how_long_a_window_is_waited_for() -> None:
    assert jailbreak().timeout_ms is None, "a local model has the signals' deadline"
    assert jailbreak("threshold: 0.5", more=remote()).timeout_ms == 1000
    assert jailbreak("threshold: 0.5", more=remote("timeout_ms: 6000")).timeout_ms == 6000
    assert jailbreak("threshold: 0.5, timeout_ms: 70", more=remote("timeout_ms: 6000")).timeout_ms == 70


def test_kinds_of_hazard() -> None:
    found = guard("safety: [{name: n, threshold: 0.5, hazard: {labels: [weapons, hate], threshold: 0.4}}]", ON_SAFETY)
    assert found.hazard is not None
    assert found.hazard.question.preset == "hazard"
    assert found.hazard.question.threshold == 0.4
    assert (found.hazard.labels, found.hazard.chosen) == (frozenset({"weapons", "hate"}), True)
    assert found.counted == ("hate", "weapons")


def test_all_kinds_of_hazard_and_the_other_spelling() -> None:
    found = loaded("safety: [{name: n, threshold: 0.5, hazard: {}}]", ON_SAFETY)
    (rule,) = found.plan.recipes["r"].guards
    assert isinstance(rule.hazard, Hazard)
    assert len(rule.hazard.labels) == 12
    assert not rule.hazard.chosen
    assert [warning.message for warning in found.warnings] == [
        'rule "n" has no hazard.threshold, and deployment builtin none that was calibrated for hazard: 0.5 is used'
    ]
    other = guard("safety: [{name: n, threshold: 0.5, hazard: {categories: [hate], threshold: 1}}]", ON_SAFETY)
    assert other.hazard is not None
    assert other.hazard.labels == {"hate"}


def test_conditions_and_inputs_name_a_rule_its_labels_and_its_value() -> None:
    score = (
        "{scores: [{name: s, method: weighted_sum, inputs: [{type: pii, name: 'n:PERSON', weight: 1, "
        "value_source: raw}, {type: jailbreak, name: j, weight: 1}]}], "
        "mappings: [{name: b, source: s, outputs: [{name: o, gte: 1}]}]}"
    )
    signals = "{jailbreak: [{name: j}, {name: k}, {name: unread}], pii: [{name: n}, {name: whole}]}"
    made = recipe(
        signals.strip("{}").replace(", pii", "\n      pii"),
        "{type: projection, name: o}, {type: jailbreak, name: k, predicate: {gte: 0.99}}, "
        "{type: pii, name: whole, label: EMAIL_ADDRESS}",
        score,
    )
    tree = made.decisions[0].rule
    assert isinstance(tree, Node)
    assert tree.children[1:] == (
        Leaf("jailbreak", "jailbreak:k", predicate=Predicate(gte=0.99)),
        Leaf("pii", "pii:whole", "EMAIL_ADDRESS"),
    )
    # A match ends the reading of a rule unless a label or the exact value is wanted of it.
    assert {rule.name: rule.whole for rule in made.guards} == {
        "jailbreak:j": False,
        "jailbreak:k": True,
        "pii:n": True,
        "pii:whole": True,
    }
    assert made.deployments == {"builtin"}


def test_labels_of_hazards_can_be_named_and_those_of_a_plain_yes_cannot() -> None:
    signals = "safety: [{name: n, threshold: 0.5, hazard: {labels: [hate], threshold: 0.5}}]"
    assert guard(signals, "{type: safety, name: n, label: hate}").whole
    (other,) = mistakes(signals, "{type: safety, name: n, label: weapons}")
    assert "n has no label" in other
    (plain,) = mistakes("safety: [{name: n, threshold: 0.5}]", "{type: safety, name: n, label: hate}")
    assert "a noul question has no labels" in plain
    (allowed,) = mistakes("pii: [{name: n, pii_types_allowed: [PERSON]}]", "{type: pii, name: n, label: PERSON}")
    assert "n has no label" in allowed


@pytest.mark.parametrize(
    ("question", "threshold"),
    [
        ("question: {type: noul, instructions: x}", 0.5),
        ("question: {type: noul, instructions: x}, predicate: {gt: 0.7}", 0.7),
        ("question: {type: noul, instructions: x}, predicate: {lt: 0.7}", None),
        ("question: {type: set, instructions: x, labels: [{key: a}], threshold: 0.3}", 0.3),
        ("question: {type: set, instructions: x, labels: [{key: a}]}, predicate: {gte: 0.8}", 0.8),
        ("question: {type: set, instructions: x, labels: [{key: a}]}", None),
        ("preset: pii", 0.6),
    ],
)
def test_a_question_that_reads_everything(question: str, threshold: float | None) -> None:
    found = guard(
        f"systemone: [{{name: n, coverage: full, on_unscanned: match, normalise: off, state: tools, {question}}}]",
        ON_SYSTEMONE,
    )
    assert (found.name, found.family, found.state) == ("n", "systemone", StateKind.TOOLS)
    assert (found.threshold, found.on_unscanned, found.normalise) == (threshold, "match", False)
    assert (found.timeout_ms, found.on_unknown, found.labels) == (None, None, None)


def test_a_question_that_reads_a_view_stays_a_question() -> None:
    made = recipe("systemone: [{name: n, question: {type: noul, instructions: x}}]", ON_SYSTEMONE)
    assert [rule.name for rule in made.questions] == ["n"]
    assert made.guards == ()


REFUSED = {
    "unknown key": (
        "jailbreak: [{name: n, treshold: 0.5}]", ON_JAILBREAK, 'unknown key "treshold"; did you mean "threshold"?'),
    "other family's key": (
        "jailbreak: [{name: n, pii_types_allowed: [PERSON]}]", ON_JAILBREAK, 'unknown key "pii_types_allowed"'),
    "threshold": (
        "jailbreak: [{name: n, threshold: 1.5}]", ON_JAILBREAK,
        "c:7:40: recipes[0].signals.jailbreak[0].threshold: 1.5 must be from 0 to 1"),
    "coverage": ("jailbreak: [{name: n, min_coverage: 50}]", ON_JAILBREAK, "min_coverage: 50 must be from 0 to 1"),
    "policy": ("jailbreak: [{name: n, on_unknown: block}]", ON_JAILBREAK, '"block" is not one of: match, no_match'),
    "unscanned": (
        "jailbreak: [{name: n, on_unscanned: best_efort}]", ON_JAILBREAK,
        '"best_efort" is not one of: best_effort, match, no_match, unknown; did you mean "best_effort"?'),
    "switch": ("jailbreak: [{name: n, normalise: false}]", ON_JAILBREAK, "is not one of: on, off"),
    "timeout": ("jailbreak: [{name: n, timeout_ms: 60001}]", ON_JAILBREAK, "60001 must be from 1 to 60000"),
    "coverage without effect": (
        "jailbreak: [{name: n, on_unscanned: match, min_coverage: 0.5}]", ON_JAILBREAK,
        "min_coverage has no effect with on_unscanned: match; it belongs to on_unscanned: best_effort"),
    "unknown type of data": (
        "pii: [{name: n, pii_types_allowed: [EMAIL_ADRESS]}]", ON_PII,
        '7:43: recipes[0].signals.pii[0].pii_types_allowed[0]: the model cannot give the label "EMAIL_ADRESS"; '
        'did you mean "EMAIL_ADDRESS"?'),
    "a type that this model lacks": (
        "pii: [{name: n, pii_types_allowed: [IBAN_CODE]}]", ON_PII, "it has: PERSON, EMAIL_ADDRESS, PHONE_NUMBER"),
    "a type twice": ("pii: [{name: n, pii_types_allowed: [PERSON, PERSON]}]", ON_PII, '"PERSON" is listed twice'),
    "every type": (
        "pii: [{name: n, pii_types_allowed: [PERSON, EMAIL_ADDRESS, PHONE_NUMBER]}]", ON_PII,
        "every type is allowed, so the rule never matches"),
    "no type": ("pii: [{name: n, pii_types_allowed: []}]", ON_PII, "must have at least 1 item, not 0"),
    "hazard": (
        "safety: [{name: n, hazard: {labels: [weapon]}}]", ON_SAFETY,
        'the model cannot give the label "weapon"; did you mean "weapons"?'),
    "hazard twice": (
        "safety: [{name: n, hazard: {labels: [hate], categories: [hate]}}]", ON_SAFETY,
        "labels and categories are one key; keep labels"),
    "a condition on no rule": (
        "jailbreak: [{name: attack}]", "{type: jailbreak, name: atack}",
        'no jailbreak rule is named "atack"; did you mean "attack"?'),
    "two of one name": ("jailbreak: [{name: n}, {name: n}]", ON_JAILBREAK, 'duplicate jailbreak rule name "n"'),
    "a choice in windows": (
        "systemone: [{name: n, coverage: full, question: "
        "{type: choice, instructions: x, choices: [{key: a}, {key: b}]}}]",
        "{type: systemone, name: n, label: a}",
        "coverage: a choice question cannot be answered window by window; write coverage: truncate; full is for noul, "
        "set, span"),
    "a score in windows": (
        "systemone: [{name: n, coverage: full, predicate: {gte: 1}, question: {type: score, instructions: x, "
        "levels: [a, b]}}]", ON_SYSTEMONE, "a score question cannot be answered window by window"),
    "windows of a view": (
        "systemone: [{name: n, min_coverage: 0.5, question: {type: noul, instructions: x}}]", ON_SYSTEMONE,
        "min_coverage has no effect with coverage: truncate; add coverage: full, or remove it"),
    "disguises in a view": (
        "systemone: [{name: n, normalise: on, question: {type: noul, instructions: x}}]", ON_SYSTEMONE,
        "normalise has no effect with coverage: truncate"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=list(REFUSED))
def test_mistakes(case: str) -> None:
    signals, condition, expected = REFUSED[case]
    (found,) = mistakes(signals, condition)
    assert expected in found


def test_a_model_that_cannot_be_asked() -> None:
    none = Capabilities(question_types=frozenset({QuestionType.CHOICE}))
    (found,) = mistakes("pii: [{name: n}]", ON_PII, can=none)
    assert "the model of deployment builtin has no preset pii, and cannot answer its public text" in found
    (hazard,) = mistakes("safety: [{name: n, threshold: 0.5, hazard: {}}]", ON_SAFETY, can=_without_sets())
    assert "has no preset hazard" in hazard
    assert "signals.safety[0].hazard" in hazard
    (remote_spans,) = mistakes("pii: [{name: n, threshold: 0.5}]", ON_PII, more=remote())
    assert "it answers: choice, noul, score" in remote_spans
    assert mistakes("pii: [{name: n, threshold: 0.5}]", ON_PII, more=remote(SPANS)) == []


def _without_sets() -> Capabilities:
    return Capabilities(frozenset(), {"safety": QuestionType.NOUL}, preset_thresholds={"safety": 0.5})


def test_a_model_that_answers_a_preset_by_another_type() -> None:
    other = Capabilities(frozenset(), {"pii": QuestionType.NOUL})
    (found,) = mistakes("pii: [{name: n}]", ON_PII, can=other)
    assert "answers pii by noul, not by span" in found


def test_a_model_that_has_not_said_what_it_can_do_is_given_the_public_types() -> None:
    found = guard("pii: [{name: n, threshold: 0.5, pii_types_allowed: [PERSON, GPE]}]", ON_PII, can=None)
    assert len(found.counted) == 15
    assert found.allowed == {"PERSON", "GPE"}


def test_the_embedded_model_calibrates_all_three() -> None:
    can = describe("builtin")
    assert can is not None
    assert {"jailbreak", "safety", "pii"} <= can.preset_thresholds.keys()


def test_the_page_shows_a_whole_configuration() -> None:
    (text,) = re.findall(r"^```yaml\n(version: .*?)^```", (ROOT / "docs" / "guards.md").read_text(), re.M | re.S)
    found = load(text, environ={}, describe=describe, serving=True, file="c")
    about = [warning for warning in found.warnings if warning.path.startswith(("recipes", "global"))]
    assert unexpected(about) == []
    assert len(found.plan.recipes["default"].guards) == 3
