"""`embeddings` rules: what they become, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from router.config.plan import Leaf, Node, QuestionRule, StateKind
from router.questions import Predicate, QuestionType
from tests.support.config_samples import CAN
from tests.unit.config.test_config_signals import loaded, mistakes, recipe

CAN = replace(CAN, similarity=True)
RULE = "{name: n, threshold: 0.6, candidates: [reset my password, close my account]}"
CONDITION = "{type: embedding, name: n}"


@pytest.mark.parametrize(("container", "kind"), [("embeddings", "embedding"), ("embedding", "embeddings")])
def test_a_rule(container: str, kind: str) -> None:
    made = recipe(f"{{{container}: [{RULE}]}}", f"{{type: {kind}, name: n}}", can=CAN)
    (rule,) = made.questions
    assert isinstance(rule, QuestionRule)
    assert (rule.name, rule.deployment, rule.state) == ("embedding:n", "builtin", StateKind.USER)
    assert (rule.predicate, rule.timeout_ms, rule.aggregation) == (Predicate(gte=0.6), 1000, "max")
    assert rule.question.type is QuestionType.SIMILARITY
    assert [option.description for option in rule.question.options] == ["reset my password", "close my account"]
    decision = made.decisions[0].rule
    assert isinstance(decision, Node)
    assert decision.children == (Leaf("embedding", "embedding:n"),)


def test_its_settings() -> None:
    written = "{name: n, predicate: {gte: 0.2, lt: 0.9}, candidates: [a], aggregation_method: any, timeout_ms: 50}"
    (rule,) = recipe(f"{{embeddings: [{written}]}}", CONDITION, can=CAN).questions
    assert (rule.predicate, rule.aggregation, rule.timeout_ms) == (Predicate(gte=0.2, lt=0.9), "any", 50)


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("{name: n, candidates: [a]}", "an embedding rule needs a threshold"),
        ("{name: n, threshold: 0.5, predicate: {gte: 0.5}, candidates: [a]}", "cannot both be given"),
        ("{name: n, threshold: 1.5, candidates: [a]}", "threshold"),
        ("{name: n, threshold: 0.5}", "candidates"),
        ("{name: n, threshold: 0.5, candidates: []}", "candidates"),
        ("{name: n, threshold: 0.5, candidates: [a, b, a]}", 'duplicate candidate "a"'),
        ("{name: n, threshold: 0.5, candidates: [a, ' ']}", "must not be blank"),
        ("{name: n, threshold: 0.5, candidates: [a], aggregation_method: median}", "aggregation_method"),
        ("{name: n, threshold: 0.5, candidates: [a], query_modality: image}", '"image" is not supported yet'),
        ("{name: n, threshold: 0.5, candidates: [a], deployment: nowhere}", "no deployment is named"),
        ("{name: n, threshold: 0.5, candidates: [a], model: x}", 'unknown key "model"'),
    ],
)
def test_what_is_refused(written: str, says: str) -> None:
    (problem,) = mistakes(f"{{embeddings: [{written}]}}", CONDITION, can=CAN)
    assert says in problem


def test_a_model_that_compares_no_texts() -> None:
    (problem,) = mistakes(f"{{embeddings: [{RULE}]}}", CONDITION, can=replace(CAN, similarity=False))
    assert "the model of deployment builtin does not tell how alike texts are" in problem


def test_a_remote_api_compares_no_texts() -> None:
    more = """
    global:
      model_catalog:
        deployments:
          far: {provider: systemone, endpoint: "https://x.example.com/v1/systemone", model: m}
    """
    rule = "{name: n, threshold: 0.6, candidates: [a], deployment: far}"
    (problem,) = mistakes(f"{{embeddings: [{rule}]}}", CONDITION, can=CAN, more=more)
    assert "deployment: the model of deployment far does not tell how alike texts are" in problem


def test_an_attached_runtime_says_later_what_it_can() -> None:
    more = """
    global:
      model_catalog:
        deployments:
          near: {provider: model_runtime, endpoint: "http://127.0.0.1:8100"}
    """
    rule = "{name: n, threshold: 0.6, candidates: [a], deployment: near}"
    (made,) = recipe(f"{{embeddings: [{rule}]}}", CONDITION, can=CAN, more=more).questions
    assert made.deployment == "near"


def test_a_condition_has_no_label() -> None:
    (problem,) = mistakes(f"{{embeddings: [{RULE}]}}", "{type: embedding, name: n, label: a}", can=CAN)
    assert "has no labels" in problem


def test_an_input_of_a_score_and_a_rule_that_nothing_reads() -> None:
    scores = (
        "{scores: [{name: s, method: weighted_sum, inputs: [{type: embedding, name: n, weight: 1, value_source: raw}]}]"
    )
    bands = ", mappings: [{name: m, source: s, outputs: [{name: near, gte: 0.5}]}]}"
    made = loaded(
        f"{{embeddings: [{RULE}, {RULE.replace('name: n', 'name: idle')}]}}",
        "{type: projection, name: near}",
        scores + bands,
        CAN,
    )
    assert [one.name for one in made.plan.recipes["r"].questions] == ["embedding:n"]
    assert any('"idle"' in problem.render() for problem in made.warnings)


class TestPartitions:
    PARTITION = "{partitions: [{name: p, members: [a, b], default: b, semantics: exclusive}]}"

    def test_of_embedding_rules(self) -> None:
        signals = f"{{embeddings: [{RULE.replace('name: n', 'name: a')}, {RULE.replace('name: n', 'name: b')}]}}"
        made = recipe(signals, "{type: embedding, name: a}", self.PARTITION, CAN)
        assert made.partitions[0].members == ("embedding:a", "embedding:b")
        assert made.partitions[0].default == "embedding:b"
        assert len(made.questions) == 2

    def test_members_are_of_one_family(self) -> None:
        signals = f"{{embeddings: [{RULE.replace('name: n', 'name: a')}], domains: [{{name: b, threshold: 0.5}}]}}"
        problems = mistakes(signals, "{type: embedding, name: a}", self.PARTITION, CAN)
        assert any("no embedding rule is named" in one or "no domain rule is named" in one for one in problems)
