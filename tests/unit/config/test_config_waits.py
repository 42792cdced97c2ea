"""A wait that is longer than a call to its deployment may take is warned about, whatever asks."""

from __future__ import annotations

import pytest

from router.config.problems import Problem
from tests.support.config_samples import edited, read
from tests.unit.config.test_config_signals import loaded

FAR = "global: {model_catalog: {deployments: {far: {provider: model_runtime, endpoint: 'http://127.0.0.1:9', MORE}}}}\n"
BOUND = FAR.replace("MORE", "timeout_ms: 500")
RULES = {
    "systemone": "question: {type: noul, instructions: Is it?}",
    "systemone, whole": "question: {type: noul, instructions: Is it?}, coverage: full",
    "fact_check": "threshold: 0.5",
    "embedding": "threshold: 0.5, candidates: [a]",
    "jailbreak": "threshold: 0.5",
}


def warnings(kind: str, wait_ms: int, more: str = BOUND, deployment: str = "far") -> list[Problem]:
    family = kind.partition(",")[0]
    rule = f"{{name: n, deployment: {deployment}, timeout_ms: {wait_ms}, {RULES[kind]}}}"
    found = loaded(f"{{{family}: [{rule}]}}", f"{{type: {family}, name: n}}", more=more)
    return [warning for warning in found.warnings if warning.path.endswith("timeout_ms")]


@pytest.mark.parametrize("kind", RULES)
def test_a_rule_that_waits_longer_than_its_deployment_allows(kind: str) -> None:
    (warning,) = warnings(kind, 501)
    assert (warning.message, warning.hint) == (
        "a call to deployment far ends after 500 ms, and the wait with it",
        "write at most 500, or give the deployment more",
    )
    assert warning.path == f"recipes[0].signals.{kind.partition(',')[0]}[0].timeout_ms"


@pytest.mark.parametrize("kind", RULES)
def test_a_wait_within_the_bound_or_without_one(kind: str) -> None:
    assert warnings(kind, 500) == []
    assert warnings(kind, 60_000, FAR.replace(", MORE", "")) == []


def test_a_deployment_of_ours_bounds_no_call() -> None:
    ours = (
        "global: {model_catalog: {deployments: {own: {provider: model_runtime, artifact: builtin, timeout_ms: 500}}}}\n"
    )
    assert warnings("systemone", 501, ours, "own") == []


@pytest.mark.parametrize(("wait_ms", "count"), [(500, 0), (501, 1)])
def test_a_selector(wait_ms: int, count: int) -> None:
    algorithm = f"algorithm: {{type: systemone, systemone: {{deployment: far, timeout_ms: {wait_ms}}}}}"
    refs = f"        modelRefs: [{{model: small}}, {{model: large}}]\n        {algorithm}\n"
    text = edited(("        modelRefs:\n          - model: small\n", refs)) + BOUND
    assert [warning.path for warning in read(text).warnings] == [
        "recipes[0].decisions[1].algorithm.systemone.timeout_ms"
    ] * count
