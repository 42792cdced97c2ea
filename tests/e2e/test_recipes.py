"""Every recipe under examples/ does through a real Envoy what its probes say, and is as often right as it says."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from router.explaining.probes import Judged, Verdict, read_probes, tally
from router.serving.probing import send
from tests.support.examples import MEASURING, RECIPES, served
from tests.support.measured import families_measured, measured
from tests.support.stack import Stack


def sent(product: Stack, path: Path) -> Sequence[Judged]:
    return asyncio.run(send(product.base, read_probes(path.read_text("utf-8"), path.name)))


def gone_wrong(judged: Sequence[Judged], verdict: Verdict) -> list[tuple[int, object, object]]:
    return [(one.probe.line, one.probe.expected, one.came) for one in judged if one.verdict is verdict]


@pytest.mark.parametrize("folder", RECIPES, ids=lambda folder: folder.name)
def test_probes_come_out_as_they_say(folder: Path, tmp_path: Path) -> None:
    heldout = folder / "heldout.jsonl"
    with served(folder, tmp_path) as product:
        judged = sent(product, folder / "probes.jsonl")
        unseen = sent(product, heldout) if heldout.exists() else None
    assert gone_wrong(judged, Verdict.WRONG) == []
    assert gone_wrong(judged, Verdict.FIXED) == []
    if unseen is not None:
        found, said = tally(unseen), measured(folder / "README.md")
        assert found.total == said.of
        assert found.right == pytest.approx(said.right, abs=said.slack)


def test_learned_families_are_as_often_right_as_the_page_says(tmp_path: Path) -> None:
    said = families_measured()
    with served(MEASURING, tmp_path) as product:
        found = {path.stem: tally(sent(product, path)) for path in sorted(MEASURING.glob("*.jsonl"))}
    assert found.keys() == said.keys()
    for family, counted in found.items():
        expected = said[family]
        assert (family, counted.total) == (family, expected.of)
        assert counted.right == pytest.approx(expected.right, abs=expected.slack), family
