"""What bench/rules compares: that its rules and texts are what they are called, and the sums."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.rules.benchmark import ratios
from bench.rules.plot import draw
from bench.rules.reading import chat, exponent
from bench.rules.recipes import families, many, typical
from bench.rules.texts import SIZES, texts, with_hits
from router.config.heuristics import HeuristicRule
from router.config.plan import QuestionRule
from router.signals.facts import RequestFacts
from router.signals.heuristics import Heuristics
from router.wire.request import read_request
from router.wire.surface import Format

GROWN = [
    {"text": kind, "size": str(size), "bytes": size, "us": size * slope}
    for kind, slope in (("English", 2.0), ("code", 3.0))
    for size in (1_000, 32_000)
]


def _matching(rules: list[HeuristicRule], text: str) -> int:
    found = Heuristics(rules).read(RequestFacts(read_request(Format.CHAT, chat(text))))
    return sum(one.matched is True for one in found.values())


@pytest.mark.parametrize("kind", texts())
def test_texts_are_as_long_as_said_and_hold_what_is_said(kind: str) -> None:
    written, rules = texts()[kind], list(many())
    assert [len(text.encode()) // 1000 for text in written] == [size // 1000 for size in SIZES.values()]
    assert [_matching(rules, text) for text in written[:2]] == [0, 0]
    few, most = (_matching(rules, text) for text in with_hits(written[:2]))
    assert 0 < few < most


def test_the_rules_are_as_many_as_said() -> None:
    rules = many()
    keywords = [keyword for rule in rules for keyword in getattr(rule, "keywords", ())]
    assert len(set(keywords)) == 1_100
    assert len(typical()) == 7
    assert not any(isinstance(rule, QuestionRule) for rule in typical())
    assert all(Heuristics(one) for one in families().values())


def test_the_exponent_of_linear_growth_is_one() -> None:
    assert exponent(GROWN[:2]) == pytest.approx(1.0)


def test_ratios_are_of_medians_and_of_the_worst_kind_of_text() -> None:
    beside = [
        {"round": n, "rules_us": 5.0 * n, "rules_hit_us": 20.0, "gateway_us": 100.0, "gateway_with_rules_us": 130.0}
        for n in (1, 2, 9)
    ]
    square = [{"text": "odd", "size": "x", "bytes": size, "us": size**2} for size in (10, 1_000)]
    assert ratios([*GROWN, *square], beside) == {
        "heuristics_vs_gateway": 0.1,
        "heuristics_hit_vs_gateway": 0.2,
        "recipe_in_place_vs_gateway": 0.3,
        "growth_exponent": 2.0,
    }


def test_growth_is_drawn(tmp_path: Path) -> None:
    assert draw(GROWN, tmp_path / "rules.png").stat().st_size > 1_000
