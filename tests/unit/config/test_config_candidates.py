"""Candidates of decisions: weights, reasoning, LoRA names, and the way one is picked."""

from __future__ import annotations

import pytest

from router.config.candidates import ModelRef, Reasoning, Switch
from router.config.plan import Decision, Selector
from router.questions import Option
from tests.support.config_samples import edited, errors, read

REFS = "        modelRefs:\n          - model: small\n"
FAMILIES = "  defaults:\n    reasoning_families: {qwen3: {type: chat_template_kwargs, parameter: enable_thinking}}\n"


def with_refs(refs: str, *edits: tuple[str, str]) -> str:
    return edited((REFS, f"        {refs}\n"), *edits)


def decision(refs: str, *edits: tuple[str, str]) -> Decision:
    return read(with_refs(refs, *edits)).plan.recipes["default"].decisions[1]


def test_plain() -> None:
    found = decision("modelRefs: [{model: small}, {model: large}]")
    assert found.model_refs == (ModelRef("small"), ModelRef("large"))
    assert found.selector == Selector("static")


@pytest.mark.parametrize("algorithm", ["", "\n        algorithm: {type: weighted}"])
def test_weights(algorithm: str) -> None:
    found = decision("modelRefs: [{model: small, weight: 3}, {model: large}]" + algorithm)
    assert found.model_refs == (ModelRef("small", 3), ModelRef("large", 1))
    assert found.selector == Selector("weighted")


def test_lora_name() -> None:
    assert decision("modelRefs: [{model: small, lora_name: sql}]").model_refs == (ModelRef("small", lora_name="sql"),)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("use_reasoning: true", Reasoning(True, None)),
        ("use_reasoning: false", Reasoning(False, None)),
        ("reasoning_effort: low", Reasoning(True, "low")),
        ("reasoning_effort: none", Reasoning(False, None)),
        ("use_reasoning: true, reasoning_effort: max", Reasoning(True, "max")),
    ],
)
def test_reasoning(written: str, expected: Reasoning) -> None:
    assert decision(f"modelRefs: [{{model: small, {written}}}]").model_refs[0].reasoning == expected


def test_reasoning_of_a_family() -> None:
    family = ("    - name: small\n", "    - name: small\n      reasoning_family: qwen3\n")
    defaults = ("providers:\n", "providers:\n" + FAMILIES + "    default_reasoning_effort: high\n")
    found = decision("modelRefs: [{model: small, use_reasoning: true}]", family, defaults)
    switch = Switch("chat_template_kwargs", "enable_thinking")
    assert found.model_refs[0].reasoning == Reasoning(True, "high", switch)


@pytest.mark.parametrize(
    ("refs", "edits", "expected"),
    [
        ("modelRefs: [{model: small, weight: 0}]", [], "weight: must be greater than 0"),
        (
            "modelRefs: [{model: small, weight: 2}]\n        algorithm: {type: static}",
            [],
            "modelRefs[0].weight: weights mean nothing to the algorithm static; remove them, or write type: weighted",
        ),
        (
            "modelRefs: [{model: small, use_reasoning: false, reasoning_effort: low}]",
            [],
            "use_reasoning: false contradicts reasoning_effort: low; keep one of them",
        ),
        ("modelRefs: [{model: small, reasoning_effort: lots}]", [], '"lots" is not one of: none, minimal, low'),
        (
            "modelRefs: [{model: small}]",
            [
                ("    - name: small\n", "    - name: small\n      reasoning_family: qwen\n"),
                ("providers:\n", "providers:\n" + FAMILIES),
            ],
            'reasoning_family: no reasoning family is named "qwen"; did you mean "qwen3"?',
        ),
        (
            "modelRefs: [{model: small}]",
            [("providers:\n", "providers:\n  defaults: {reasoning_families: {a: {type: chat_template_kwargs}}}\n")],
            'reasoning_families.a: missing key "parameter"; write the template\'s argument',
        ),
    ],
)
def test_mistakes(refs: str, edits: list[tuple[str, str]], expected: str) -> None:
    found = errors(with_refs(refs, *edits))
    assert len(found) == 1, found
    assert expected in found[0]


def test_a_family_is_for_chat_completions() -> None:
    edits = [
        ("    - name: small\n", "    - name: small\n      api_format: anthropic\n      reasoning_family: qwen3\n"),
        ("providers:\n", "providers:\n" + FAMILIES),
    ]
    assert any("a family is for models that speak openai" in one for one in errors(with_refs(REFS.strip(), *edits)))


TWO = "modelRefs: [{model: small}, {model: large}]"


@pytest.mark.parametrize("kind", ["systemone", "decision"])
def test_the_systemone_selector(kind: str) -> None:
    settings = f"{{type: {kind}, {kind}: {{instructions: Which?, candidates: {{large: Deep.}}, timeout_ms: 70}}}}"
    described = ("    - name: small\n", "    - name: small\n      description: Quick.\n")
    selector = decision(f"{TWO}\n        algorithm: {settings}", described).selector
    assert (selector.kind, selector.sticky) == ("systemone", True)
    assert selector.question is not None
    assert selector.question.question.options == (Option("small", "Quick."), Option("large", "Deep."))
    assert (selector.question.question.instructions, selector.question.timeout_ms) == ("Which?", 70)


def test_its_deployment_is_started() -> None:
    loaded = read(with_refs(f"{TWO}\n        algorithm: {{type: systemone, session_affinity: false}}"))
    assert "builtin" in loaded.plan.deployments
    assert loaded.plan.recipes["default"].decisions[1].selector.sticky is False


@pytest.mark.parametrize(
    ("refs", "expected"),
    [
        (
            "modelRefs: [{model: small}]\n        algorithm: {type: systemone}",
            "a selector needs at least two candidates",
        ),
        (TWO + "\n        algorithm: {type: static, systemone: {}}", "the algorithm static has no systemone"),
        (TWO + "\n        algorithm: {type: systemone, decision: {}}", "the algorithm systemone has no decision"),
        (TWO + "\n        algorithm: {type: static, session_affinity: true}", "static always picks the same candidate"),
        (
            TWO + "\n        algorithm: {type: systemone, systemone: {candidates: {larg: a}}}",
            'candidates.larg: "larg" is not among the decision\'s modelRefs; they are: small, large',
        ),
        (
            TWO + "\n        algorithm: {type: systemone, systemone: {deployment: nobody}}",
            'no deployment is named "nobody"',
        ),
        (
            "modelRefs: [{model: small}]\n        algorithm: {type: latency_aware}",
            "a selector needs at least two candidates",
        ),
        (
            TWO + "\n        algorithm: {type: multi_factor, latency_aware: {}}",
            "the algorithm multi_factor has no latency_aware",
        ),
        (TWO + "\n        algorithm: {type: latency_aware, latency_aware: {tpot_percentile: 50}}", "not supported yet"),
        (TWO + "\n        algorithm: {type: elo}", '"elo" is not supported yet'),
    ],
)
def test_mistakes_of_algorithms(refs: str, expected: str) -> None:
    found = errors(with_refs(refs))
    assert len(found) == 1, found
    assert expected in found[0]
