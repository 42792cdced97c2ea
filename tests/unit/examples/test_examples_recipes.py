"""What a folder of examples/ owes its readers: probes for every decision, held-out requests, and what was measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from router.config.load import load
from router.config.plan import Recipe
from router.explaining.probes import Probe, read_probes
from router.runtime.artifact import describe
from tests.support.examples import EXAMPLES, MEASURING, RECIPES
from tests.support.measured import FAMILIES_PAGE, families_measured, measured

FEWEST = 20
"""Held-out requests that a folder has at least."""


def recipe_of(folder: Path) -> Recipe:
    (recipe,) = load(folder / "pointsman.yaml", environ={}, describe=describe, serving=True).plan.recipes.values()
    return recipe


def probes_of(path: Path) -> tuple[Probe, ...]:
    return read_probes(path.read_text("utf-8"), path.name)


def test_there_is_a_recipe_for_each_job() -> None:
    assert {folder.name for folder in RECIPES} == {
        "agent-tools",
        "cost-routing",
        "domain-experts",
        "feedback-recovery",
        "long-documents",
        "multilingual-support",
        "privacy-split",
        "safety-gateway",
    }


@pytest.mark.parametrize("folder", RECIPES, ids=lambda folder: folder.name)
def test_every_decision_has_a_probe_and_every_probe_a_decision(folder: Path) -> None:
    decisions = {decision.name for decision in recipe_of(folder).decisions}
    expected = {probe.expected.get("decision") for probe in probes_of(folder / "probes.jsonl")}
    assert expected - {None} == decisions  # without one: a client that goes past the recipe


@pytest.mark.parametrize("folder", RECIPES, ids=lambda folder: folder.name)
def test_a_recipe_that_asks_a_model_is_measured_on_requests_that_its_probes_do_not_hold(folder: Path) -> None:
    heldout = folder / "heldout.jsonl"
    if not recipe_of(folder).deployments:
        assert folder.name in ("long-documents", "feedback-recovery")
    if not heldout.exists():
        assert not recipe_of(folder).deployments
        return
    unseen = probes_of(heldout)
    assert len(unseen) >= FEWEST
    assert not {probe.posed.body for probe in unseen} & {
        probe.posed.body for probe in probes_of(folder / "probes.jsonl")
    }
    assert measured(folder / "README.md").of == len(unseen)


def test_the_index_says_what_the_pages_say() -> None:
    index = (EXAMPLES / "README.md").read_text("utf-8")
    for folder in RECIPES:
        (row,) = (line for line in index.splitlines() if line.startswith(f"| [{folder.name}]"))
        if (folder / "heldout.jsonl").exists():
            said = measured(folder / "README.md")
            assert row.endswith(f"| {said.right} of {said.of} |")


def test_the_table_of_families_is_about_the_files() -> None:
    said = families_measured()
    assert {path.stem for path in MEASURING.glob("*.jsonl")} == said.keys()
    for family, one in said.items():
        lines = (MEASURING / f"{family}.jsonl").read_text("utf-8").splitlines()
        assert {json.loads(line)["request"]["model"] for line in lines} == {family}
        assert len(lines) == one.of >= FEWEST
    assert FAMILIES_PAGE.read_text("utf-8").count("pointsman probe") == len(said)
