"""Signal rules of every family: what they become, and what is refused."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import Any

import pytest

from router.config.heuristics import ContextRule, KeywordRule
from router.config.load import Loaded, load
from router.config.plan import Leaf, Node, QuestionRule, Recipe, StateKind
from router.config.presets import public_presets
from router.config.problems import ConfigError
from router.questions import Capabilities, ChoiceAnswer, Predicate, QuestionType
from router.runtime.artifact import describe
from tests.support.config_samples import CAN

BARE = """\
version: v0.5
listeners: [{name: public, address: 127.0.0.1, port: 8801}]
providers: {models: [{name: m, backend_refs: [{endpoint: "http://127.0.0.1:1/v1"}]}]}
recipes:
  - name: r
    signals: SIGNALS
    projections: PROJECTIONS
    decisions:
      - {name: d, rules: {operator: AND, conditions: [CONDITIONS]}, modelRefs: [{model: m}]}
      - {name: rest, rules: {}, modelRefs: [{model: m}]}
entrypoints: [{model_names: [auto], recipe: r, default: true}]
"""


def loaded(signals: str, conditions: str, projections: str = "{}", can: Capabilities = CAN, more: str = "") -> Loaded:
    text = BARE.replace("SIGNALS", signals).replace("CONDITIONS", conditions).replace("PROJECTIONS", projections)
    return load(text + textwrap.dedent(more), environ={}, describe=lambda _: can, serving=True, file="c")


def recipe(*arguments: Any, **more: Any) -> Recipe:
    return loaded(*arguments, **more).plan.recipes["r"]


def mistakes(*arguments: Any, **more: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        loaded(*arguments, **more)
    return [problem.render() for problem in caught.value.problems if problem.severity == "error"]


@pytest.mark.parametrize(
    ("signals", "condition"),
    [
        ("{keywords: [{name: n, keywords: [a]}]}", "{type: keyword, name: n}"),
        ("{keyword: [{name: n, keywords: [a]}]}", "{type: keywords, name: n}"),
        ("{language: [{name: zh}]}", "{type: language, name: zh}"),
        ("{context: [{name: n, min_tokens: 32K, max_tokens: 1M}]}", "{type: context, name: n}"),
        (
            "{structure: [{name: n, feature: {type: count, source: {type: text_bytes}}, predicate: {gte: 9}}]}",
            "{type: structure, name: n}",
        ),
        (
            "{conversation: [{name: n, feature: {type: exists, source: {type: message, role: developer}}}]}",
            "{type: conversation, name: n}",
        ),
        ("{metadata: [{name: n, key: k, predicate: {in: [a, b]}}]}", "{type: metadata, name: n}"),
        (
            "{role_bindings: [{name: n, role: r, subjects: [{kind: User, name: u}]}]}",
            "{type: authz, name: n}",
        ),
        ("{input_modality: [{name: n, modality: image}]}", "{type: input_modality, name: n}"),
        ("{events: [{name: n, severities: [critical], temporal: true}]}", "{type: event, name: n}"),
    ],
)
def test_every_heuristic_family(signals: str, condition: str) -> None:
    made = recipe(signals, condition)
    (rule,) = made.heuristics
    tree = made.decisions[0].rule
    assert isinstance(tree, Node)
    assert tree.children == (Leaf(rule.family, rule.name),)
    assert not made.questions


def test_keys_keep_families_apart() -> None:
    signals = "{keywords: [{name: n, keywords: [a]}], context: [{name: n, max_tokens: 5}]}"
    made = recipe(signals, "{type: keyword, name: n}, {type: context, name: n}")
    assert [rule.name for rule in made.heuristics] == ["keyword:n", "context:n"]
    assert made.heuristics[1] == ContextRule("context:n", 0, 5)


def test_a_rule_that_nothing_reads_is_left_out_and_warned_about() -> None:
    found = loaded("{keywords: [{name: n, keywords: [a]}, {name: o, keywords: [b]}]}", "{type: keyword, name: n}")
    assert [rule.name for rule in found.plan.recipes["r"].heuristics] == ["keyword:n"]
    assert any('reads "o"' in warning.message for warning in found.warnings)


def test_keyword_defaults() -> None:
    (rule,) = recipe("{keywords: [{name: n, keywords: [a]}]}", "{type: keyword, name: n}").heuristics
    assert rule == KeywordRule("keyword:n", "OR", "regex", ("a",))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("keywords: [{name: n, keywords: [C++]}]", "is not a regular expression of RE2"),
        ('keywords: [{name: n, keywords: ["a(?=b)"]}]', "is not a regular expression of RE2"),
        ("keywords: [{name: n, keywords: []}]", "must have at least 1"),
        (
            "keywords: [{name: n, keywords: [a], bm25_threshold: 1.0}]",
            "bm25_threshold has no effect with method: regex",
        ),
        ("keywords: [{name: n, keywords: [a], method: exact, fuzzy_match: true}]", "contradicts method: exact"),
        ('keywords: [{name: n, keywords: ["++"], method: ngram}]', "holds no letters to compare"),
        ("keywords: [{name: n, keywords: [a], operator: XOR}]", "XOR"),
        ("language: [{name: zz}]", "ISO 639-1"),
        ("context: [{name: n}]", "needs min_tokens, max_tokens, or both"),
        ("context: [{name: n, min_tokens: 5, max_tokens: 4}]", "is below min_tokens"),
        ("context: [{name: n, min_tokens: 5X}]", "must be a number of tokens"),
        (
            "structure: [{name: n, feature: {type: count, source: {type: regex, pattern: a}}}]",
            "count needs a predicate",
        ),
        ("structure: [{name: n, feature: {type: exists, source: {type: regex}}}]", 'missing key "pattern"'),
        ("structure: [{name: n, feature: {type: exists, source: {type: text_bytes}}}]", "cannot be made of text_bytes"),
        (
            "conversation: [{name: n, feature: {type: exists, source: {type: message}}, predicate: {gte: 1}}]",
            "exists takes no predicate",
        ),
        ("metadata: [{name: n, key: k, predicate: {}}]", "needs exactly one of equals, in, exists"),
        ("metadata: [{name: n, key: k, predicate: {equals: a, exists: true}}]", "needs exactly one of"),
        ("events: [{name: n}]", "nothing to look for"),
        ("domains: [{name: n, threshold: 0.5, predicate: {gte: 0.5}}]", "threshold and predicate cannot both be given"),
    ],
)
def test_rules_that_make_no_sense(rule: str, expected: str) -> None:
    family = rule.split(":", maxsplit=1)[0].rstrip("s")
    name = "zz" if "name: zz" in rule else "n"
    found = mistakes("{" + rule + "}", f"{{type: {family}, name: {name}}}")
    assert len(found) == 1, found
    assert expected in found[0]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("{type: keyword, name: m}", 'no keyword rule is named "m"'),
        ("{type: keyword, name: n, label: a}", "has no labels"),
        ("{type: context, name: n}", "no context rule"),
        ("{type: complexity, name: c}", "needs a label"),
        ("{type: complexity, name: c, label: heard}", 'did you mean "hard"?'),
        ('{type: complexity, name: "c:hard"}', "write name: c and label: hard"),
    ],
)
def test_conditions_that_make_no_sense(condition: str, expected: str) -> None:
    found = mistakes("{keywords: [{name: n, keywords: [a]}], complexity: [{name: c}]}", condition)
    assert len(found) == 1, found
    assert expected in found[0]


def question(made: Recipe) -> QuestionRule:
    (rule,) = made.questions
    return rule


def test_the_models_own_preset_goes_first() -> None:
    rule = question(recipe("{complexity: [{name: c, threshold: 0.6}]}", "{type: complexity, name: c, label: hard}"))
    assert (rule.name, rule.question.preset, rule.predicate) == ("complexity:c", "complexity", Predicate(gte=0.6))


def test_a_model_without_the_preset_is_asked_the_public_text() -> None:
    made = recipe("{modality: [{name: m}]}", "{type: modality, name: m, label: DIFFUSION}")
    assert question(made).question == public_presets()["modality"]


def test_a_label_that_the_bound_model_cannot_give_is_refused() -> None:
    coarse = replace(CAN, presets={"domains": QuestionType.CHOICE}, preset_labels={"domains": ("math", "other")})
    assert recipe("{domains: [{name: d}]}", "{type: domain, name: d, label: math}", can=coarse)
    assert "law" in mistakes("{domains: [{name: d}]}", "{type: domain, name: d, label: law}", can=coarse)[0]
    inside = "{domains: [{name: d, mmlu_categories: [law]}]}"
    assert "cannot give the label" in mistakes(inside, "{type: domain, name: d}", can=coarse)[0]
    named = "{domains: [{name: physics}]}"
    assert "needs a label" in mistakes(named, "{type: domain, name: physics}", can=coarse)[0]


@pytest.mark.parametrize(
    ("signals", "condition", "expected"),
    [
        ("{domains: [{name: n}]}", "{type: domain, name: n, label: astrology}", "n has no label"),
        ("{complexity: [{name: n}]}", "{type: complexity, name: n, label: expert}", "n has no label"),
        ("{modality: [{name: n}]}", "{type: modality, name: n, label: VIDEO}", "n has no label"),
        ("{fact_check: [{name: n}]}", "{type: fact_check, name: n, label: facts}", "n has no labels"),
        ("{user_feedbacks: [{name: n}]}", "{type: user_feedback, name: n, label: angry}", "n has no label"),
        ("{turn_relation: [{name: n}]}", "{type: turn_relation, name: n, label: reply}", "n has no label"),
        ("{systemone: [{name: n, preset: domains}]}", "{type: systemone, name: n, label: astrology}", "n has no label"),
        ("{systemone: [{name: n, preset: pii}]}", "{type: systemone, name: n, label: ZIP_CODE}", "n has no label"),
        ("{systemone: [{name: n, preset: jailbreak}]}", "{type: systemone, name: n, label: x}", "n has no labels"),
        ("{systemone: [{name: n, preset: hazard}]}", "{type: systemone, name: n, label: fire}", "n has no label"),
    ],
)
def test_a_label_that_the_embedded_model_cannot_give_is_refused(signals: str, condition: str, expected: str) -> None:
    found = mistakes(signals, condition, can=describe("builtin"))
    assert len(found) == 1, found
    assert expected in found[0]


FAMILY_LABELS = {
    "domains": "biology, business, chemistry, computer science, economics, engineering, health, history, law, math, "
    "other, philosophy, physics, psychology",
    "complexity": "easy, medium, hard",
    "modality": "AR, DIFFUSION, BOTH",
    "user_feedbacks": "satisfied, need_clarification, wrong_answer, want_different, no_feedback",
    "turn_relation": "new, follow_up, repeat, correction",
}


@pytest.mark.parametrize("family", FAMILY_LABELS)
def test_the_labels_of_a_family_on_the_embedded_model(family: str) -> None:
    can = describe("builtin")
    for label in FAMILY_LABELS[family].split(", "):
        assert recipe(f"{{{family}: [{{name: n}}]}}", f"{{type: {family}, name: n, label: {label}}}", can=can)
        scores = f"[{{name: s, method: weighted_sum, inputs: [{{type: {family}, name: 'n:{label}', weight: 1}}]}}]"
        bands = "[{name: b, source: s, method: threshold_bands, outputs: [{name: o, gte: 0.5}]}]"
        projections = f"{{scores: {scores}, mappings: {bands}}}"
        signals, condition = f"{{{family}: [{{name: n}}]}}", "{type: projection, name: o}"
        assert recipe(signals, condition, projections, can=can)
        wrong = mistakes(signals, condition, projections.replace(f"n:{label}", "n:nonsense"), can=can)
        assert "nonsense" in wrong[0]


def test_a_domain_rule_matches_by_its_categories_or_its_name() -> None:
    listed = question(
        recipe("{domains: [{name: stem, mmlu_categories: [math, physics]}]}", "{type: domain, name: stem}")
    )
    assert listed.labels == frozenset({"math", "physics"})
    assert question(recipe("{domain: [{name: law}]}", "{type: domains, name: law}")).labels == frozenset({"law"})


def test_feedback_without_a_label_is_any_feedback() -> None:
    rule = question(recipe("{user_feedbacks: [{name: f}]}", "{type: user_feedback, name: f}"))
    assert rule.state is StateKind.FEEDBACK
    assert rule.labels is not None
    assert "no_feedback" not in rule.labels
    assert isinstance(rule.opening, ChoiceAnswer)
    assert rule.opening.choice == "no_feedback"


def test_a_noul_family_takes_the_calibrated_threshold() -> None:
    calibrated = replace(CAN, presets={"fact_check": QuestionType.NOUL}, preset_thresholds={"fact_check": 0.95})
    rule = question(recipe("{fact_check: [{name: f}]}", "{type: fact_check, name: f}", can=calibrated))
    assert rule.predicate == Predicate(gte=0.95)
    assert question(recipe("{fact_check: [{name: f}]}", "{type: fact_check, name: f}")).predicate == Predicate(gte=0.5)


OWN = """
    global:
      model_catalog:
        deployments:
          mine:
            provider: model_runtime
            artifact: builtin
            presets:
              complexity:
                type: choice
                instructions: How long will it take?
                choices: [{key: short}, {key: long}]
        system: {decision_model: {deployment: mine}}
"""


def test_a_deployment_can_replace_a_preset() -> None:
    signals = "{complexity: [{name: c}]}"
    rule = question(recipe(signals, "{type: complexity, name: c, label: long}", more=OWN))
    assert rule.question.preset is None
    assert rule.question.instructions == "How long will it take?"
    assert mistakes(signals, "{type: complexity, name: c, label: hard}", more=OWN)


def test_a_model_that_cannot_be_asked_is_refused() -> None:
    mute = Capabilities(frozenset())
    found = mistakes("{modality: [{name: m}]}", "{type: modality, name: m, label: AR}", can=mute)
    assert "has no preset modality" in found[0]


RIVALS = "{domains: [{name: law}, {name: math}, {name: other}]}"


def partition(**more: object) -> str:
    fields: dict[str, object] = {"name": "p", "members": "[law, math, other]", "default": "other"} | more
    written = ", ".join(f"{key}: {value}" for key, value in fields.items())
    return "{partitions: [{" + written + "}]}"


def test_a_partition_keeps_all_its_members_asked() -> None:
    made = recipe(RIVALS, "{type: domain, name: law}", partition())
    assert [rule.name for rule in made.questions] == ["domain:law", "domain:math", "domain:other"]
    (one,) = made.partitions
    assert (one.members, one.default) == (("domain:law", "domain:math", "domain:other"), "domain:other")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"default": "physics"}, "must be one of the members"),
        ({"members": "[law, nobody]", "default": "law"}, "no domain rule is named"),
        ({"semantics": "softmax_exclusive"}, "needs a temperature"),
        ({"temperature": 0.5}, "has no effect with exclusive"),
        ({"members": "[law, law]", "default": "law"}, "already is a member"),
    ],
)
def test_partitions_that_make_no_sense(fields: dict[str, object], expected: str) -> None:
    found = mistakes(RIVALS, "{type: domain, name: law}", partition(**fields))
    assert len(found) == 1, found
    assert expected in found[0]


def test_scores_read_every_family() -> None:
    signals = "{keywords: [{name: k, keywords: [a]}], complexity: [{name: c}], context: [{name: x, min_tokens: 9}]}"
    terms = (
        "{type: keyword, name: k, weight: 1}, {type: complexity, name: 'c:hard', weight: 1, value_source: raw},"
        "{type: context, name: x, weight: 1, value_source: confidence}"
    )
    scores = f"scores: [{{name: s, method: weighted_sum, inputs: [{terms}]}}]"
    bands = "mappings: [{name: m, source: s, outputs: [{name: high, gte: 1}]}]"
    made = recipe(signals, "{type: projection, name: high}", "{" + scores + ", " + bands + "}")
    assert [(one.family, one.name, one.key) for one in made.scores[0].inputs] == [
        ("keyword", "keyword:k", None),
        ("complexity", "complexity:c", "hard"),
        ("context", "context:x", None),
    ]
    assert {rule.name for rule in made.rules} == {"keyword:k", "complexity:c", "context:x"}


def identity(written: str) -> str:
    return (
        BARE.replace("port: 8801", f"port: 8801, identity: {written}")
        .replace("SIGNALS", "{}")
        .replace("PROJECTIONS", "{}")
        .replace("CONDITIONS", "")
    )


def test_trusted_peers() -> None:
    text = identity("{trust_headers: true, trusted_peers: [10.0.0.0/8, 127.0.0.1]}").replace(
        "conditions: []", "conditions: []"
    )
    plan = load(text, environ={}, describe=lambda _: CAN, serving=True).plan
    assert plan.listeners[0].trusted_peers == ("10.0.0.0/8", "127.0.0.1/32")


@pytest.mark.parametrize("written", ["{trust_headers: true}", "{trust_headers: true, trusted_peers: [proxy]}"])
def test_trust_needs_networks(written: str) -> None:
    with pytest.raises(ConfigError):
        load(identity(written), environ={}, describe=lambda _: CAN, serving=True)
