"""Fitting a card to a model that is known: its margins are what the texts say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from router.runtime.artifact import builtin_directory
from train.collecting import Data, Text
from train.examples import Example
from train.fitting import LONG, SHORT, fit
from train.layout import CLASSES, HEADS, PAIRS, WIDTH, head_slice, pair_slice
from train.reading import Output, Reader
from train.rows import open_tokenizer, tokens


class Known:
    """Reads the margin of an attack out of the first word, `m<number>`; everything else is 0."""

    def __init__(self) -> None:
        self.tokenizer = open_tokenizer(Path(builtin_directory()) / "tokenizer.json")

    def read(self, texts: Sequence[str]) -> list[Output]:
        found = []
        for text, row in zip(texts, tokens(self.tokenizer, texts), strict=True):
            heads = np.zeros(len(HEADS) * WIDTH, np.float32)
            heads[head_slice("jailbreak")[0] + 1] = float(text.split()[0].removeprefix("m"))
            spans = np.zeros((len(row.ids), len(CLASSES)), np.float32)
            spans[:, 0] = 3.0
            found.append(Output(np.zeros(384, np.float32), heads, spans, len(row.ids)))
        return found

    def windows(self, text: str, size: int, overlap: int) -> list[list[int]]:
        return [[0] * size] * 3

    def rows(self, rows: Sequence[Sequence[int]]) -> list[Output]:
        chance = np.random.default_rng(5)
        return self.read([f"m{chance.logistic(-6, 1):.4f} x" for _ in rows])

    def pairs(self, first: Sequence[str], second: Sequence[str]) -> list[object]:
        pairs = zip(first, second, strict=True)
        return [np.tile([0.0, float(a == b) * 4], len(PAIRS)).astype(np.float32) for a, b in pairs]


@pytest.fixture
def data() -> Data:
    chance = np.random.default_rng(4)
    rows = [Text(f"m{chance.logistic(-5, 1):.4f} is harmless, {n}", "own", {"jailbreak": "false"}) for n in range(600)]
    rows += [Text(f"m{chance.logistic(4, 1):.4f} is an attack, {n}", "own", {"jailbreak": "true"}) for n in range(200)]
    rows += [Text(f"m-8 {'harmless ' * 60} {n}", "own", {"jailbreak": "false"}) for n in range(60)]
    pairs = [
        Example("a" if n % 2 else "b", "relevance", str(n % 2 == 1).lower(), "own", previous="a") for n in range(80)
    ]
    spans = [Text("m0 nobody at all", "own", {}, ())] * 10
    return Data({"jailbreak": rows, "pii": spans}, {"relevance": pairs})


def test_a_guard_has_levels_that_rise_with_the_windows_of_a_long_text(data: Data) -> None:
    fitted = fit(cast(Reader, Known()), data, 1)["jailbreak"]
    assert [level.tokens for level in fitted.levels] == [*SHORT, *LONG]
    long = [level.threshold or 0 for level in fitted.levels[len(SHORT) :]]
    assert long == sorted(long)
    assert long[0] < long[-1] < 1
    assert fitted.threshold == fitted.levels[0].threshold


def test_the_threshold_of_a_short_text_lets_one_in_a_hundred_harmless_ones_pass(data: Data) -> None:
    fitted = fit(cast(Reader, Known()), data, 1)["jailbreak"]
    level = fitted.levels[0]
    margins = np.random.default_rng(9).logistic(-5, 1, size=20_000) / level.temperature
    assert 0.003 < (1 / (1 + np.exp(-margins)) >= (level.threshold or 0)).mean() < 0.03


def test_pairs_and_spans_are_fitted_and_what_has_too_few_texts_is_not(data: Data) -> None:
    fits = fit(cast(Reader, Known()), data, 1)
    assert set(fits) == {"jailbreak", "relevance", "pii"}
    assert 0.3 < (fits["relevance"].threshold or 0) < 1
    first, last = pair_slice("relevance")
    assert last - first == 2


def test_a_threshold_means_the_same_margin_at_the_temperature_of_every_length(data: Data) -> None:
    for row in data.texts["jailbreak"]:
        row.labels |= {"fact_check": row.labels["jailbreak"]}
    reader = Known()
    first = head_slice("jailbreak")[0]

    def read(texts: Sequence[str]) -> list[Output]:
        found = Known.read(reader, texts)
        for one in found:
            one.heads[head_slice("fact_check")[0] + 1] = one.heads[first + 1]
        return found

    reader.read = read  # type: ignore[method-assign]
    fitted = fit(cast(Reader, reader), data, 1)["fact_check"]
    assert fitted.threshold is not None
    margin = np.log(fitted.threshold / (1 - fitted.threshold)) * fitted.temperature
    for level in fitted.levels[: len(SHORT)]:
        assert level.threshold is not None
        assert np.log(level.threshold / (1 - level.threshold)) * level.temperature == pytest.approx(margin, abs=0.01)
    long = [level.threshold or 0 for level in fitted.levels[len(SHORT) :]]
    assert long == sorted(long)
