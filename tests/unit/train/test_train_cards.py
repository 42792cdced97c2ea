from __future__ import annotations

import hashlib
import json
from pathlib import Path

from router.questions import QuestionType
from router.runtime.card_reader import parse_card
from train.cards import card, seal, write_card
from train.examples import DOMAINS, HAZARDS
from train.fitting import Fit, Level
from train.layout import DIALOGUE, HEADS, PAIRS

FITS = {
    "jailbreak": Fit(1.5, 0.7, [Level(64, 1.5, 0.7), Level(2048, 1.2, 0.95)]),
    "domains": Fit(0.8),
    "relevance": Fit(1.1, 0.6),
    "pii": Fit(1.0, 0.55),
}


def test_the_card_is_one_that_the_runtime_reads() -> None:
    read = parse_card(card("0.2.0", "2026-11-30", FITS, {"weak": ["complexity"]}), golden=False)
    assert set(read.presets) == {*HEADS, *PAIRS, "pii"}
    assert read.presets["domains"].labels == DOMAINS
    assert read.presets["hazard"].type is QuestionType.SET
    assert read.presets["hazard"].labels == HAZARDS
    assert read.presets["pii"].labels[:3] == ("PERSON", "STREET_ADDRESS", "DATE_TIME")
    assert read.presets["refusal"].reads == "answer"
    assert read.presets["tool_need"].pair == ("request", "tools")
    assert all(read.presets[task].pair is None for task in DIALOGUE)


def test_what_was_fitted_is_in_it() -> None:
    read = parse_card(card("0.2.0", "2026-11-30", FITS, {}), golden=False)
    jailbreak = read.presets["jailbreak"]
    assert (jailbreak.scale(60), jailbreak.threshold_at(60)) == (1.5, 0.7)
    assert (jailbreak.scale(600), jailbreak.threshold_at(9_999)) == (1.2, 0.95)
    assert (read.presets["relevance"].temperature, read.presets["relevance"].threshold) == (1.1, 0.6)


def test_what_measured_weakly_or_was_never_fitted_is_called_weak() -> None:
    told = parse_card(card("0.2.0", "2026-11-30", FITS, {"weak": ["domains"]}), golden=False).capabilities()
    assert {"domains", "safety", "tool_need"} <= told.weak_presets
    assert {"jailbreak", "relevance", "pii"}.isdisjoint(told.weak_presets)
    assert told.weak_types == {QuestionType.NOUL, QuestionType.SCORE, QuestionType.SET}


def test_digests_are_of_what_is_there(tmp_path: Path) -> None:
    write_card(tmp_path, {"name": "x"})
    (tmp_path / "model.onnx").write_bytes(b"weights")
    (tmp_path / "work").mkdir()
    seal(tmp_path)
    lines = dict(line.split("  ")[::-1] for line in (tmp_path / "SHA256SUMS").read_text().splitlines())
    assert set(lines) == {"decision.json", "model.onnx"}
    assert lines["model.onnx"] == hashlib.sha256(b"weights").hexdigest()
    assert json.loads((tmp_path / "decision.json").read_text()) == {"name": "x"}
