"""From nothing to a finished artifact: data, training, export, calibration, golden cases, evaluation.

What takes long is kept in a folder beside the artifact, so that a run that was ended goes on where it was.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from router.runtime.artifact import Artifact
from router.runtime.card_reader import parse_card
from train.base import GUARD, open_base
from train.cards import card, seal, write_card
from train.collecting import Data, collect, counts, sources, split, unread
from train.data.packages import fetch
from train.data.sources import PACKAGES
from train.encoder import load_encoder
from train.evaluation.apart import Apart, apart, evaluation_texts
from train.examples import Split
from train.export import export
from train.fitting import Fit, fit
from train.golden import golden
from train.quantise import quantise
from train.reading import Reader
from train.readme import read_me
from train.rows import open_tokenizer
from train.teacher import open_teacher
from train.training import Plan, train

log = logging.getLogger(__name__)

SEED: Final = 7
STEPS: Final = 1400
"""A full run: about forty minutes of training on two cores that do nothing else."""
QUICK_STEPS: Final = 150
QUICK_SHARE: Final = 0.25
_RECIPE: Final = Path(__file__).parent
_LICENCE: Final = Path(__file__).parents[1] / "LICENSE"


@dataclass(frozen=True, slots=True)
class Making:
    """A run: where to, and how much of everything. `share` is the part of the data that is drawn."""

    folder: Path
    version: str
    released: str
    steps: int = STEPS
    share: float = 1.0
    threads: int = 2
    seed: int = SEED

    @property
    def work(self) -> Path:
        """What the run goes on from. Not in the artifact's folder, where every file must have its digest."""
        return self.folder.with_name(f"{self.folder.name}-work")

    @property
    def mark(self) -> str:
        """What a checkpoint is of: these numbers, and the code and words of the recipe as they are."""
        digest = hashlib.sha256(repr((self.steps, self.share, self.threads, self.seed)).encode())
        for file in sorted((*_RECIPE.rglob("*.py"), *_RECIPE.rglob("*.yaml"), *_RECIPE.rglob("*.json"))):
            digest.update(file.read_bytes())
        return digest.hexdigest()[:12]

    def changed(self, *, steps: int | None, seed: int | None) -> Making:
        """The run with what was asked for."""
        return replace(self, steps=steps or self.steps, seed=self.seed if seed is None else seed)

    def quick(self) -> Making:
        """A run that proves the recipe within ten minutes, and makes a bad model."""
        return replace(self, steps=min(self.steps, QUICK_STEPS), share=QUICK_SHARE)


def prepared(run: Making) -> dict[Split, Data]:
    """All data in its splits, without what is near to a text of an evaluation set."""
    tests = Apart.of(evaluation_texts())
    found = list(apart(collect(sources(), run.seed, run.share), tests))
    log.info("%d examples are apart from the evaluation sets", len(found))
    data = split(found, tests.prints)
    calibration, few = unread(data["calibration"], data["train"])
    log.info("calibrated on texts like those of training, for want of others: %s", ", ".join(few) or "none")
    return {**data, "calibration": calibration, "test": unread(data["test"], data["train"])[0]}


def graphs_and_fits(run: Making, data: Mapping[Split, Data]) -> dict[str, Fit]:
    """Train, export, and fit the card's numbers. Goes on from a checkpoint of the same run. Takes an hour."""
    for folder in (run.folder, run.work):
        folder.mkdir(parents=True, exist_ok=True)
    for name, part in data.items():
        log.info("%s: %s", name, counts(part))
    _graphs(run, data["train"])
    return fit(Reader(run.folder, run.threads), data["calibration"], run.seed)


def _graphs(run: Making, data: Data) -> None:
    base = open_base()
    tokenizer = open_tokenizer(base.tokenizer)
    plan = Plan(run.steps, run.seed, run.threads, run.work / f"checkpoint-{run.mark}.pt")
    teacher = open_teacher(fetch(GUARD))
    net = train(load_encoder(base.weights), load_encoder(base.weights), tokenizer, data, plan, teacher)
    whole, pair = export(net, run.work)
    quantise(whole, run.folder / "model.onnx")
    quantise(pair, run.folder / "pair.onnx")
    shutil.copyfile(base.tokenizer, run.folder / "tokenizer.json")


def finish(run: Making, fits: Mapping[str, Fit], evaluation: Mapping[str, Any], tables: str = "") -> None:
    """Write card, golden cases, read-me, licence, notice and digests around the graphs of the run's folder."""
    folder = run.folder
    shutil.copyfile(_LICENCE, folder / "LICENSE")
    (folder / "NOTICE").write_text(notice(), encoding="utf-8")
    if tables:
        text = read_me(run.version, evaluation.get("weak", ()), evaluation.get("unmeasured", ()), tables)
        (folder / "README.md").write_text(text, encoding="utf-8")
    data = card(run.version, run.released, fits, evaluation)
    whole = Artifact(folder, parse_card(data, golden=False), "")
    write_card(folder, {**data, "golden": golden(whole)})
    seal(folder)


def notice() -> str:
    """Whose work the weights were made of."""
    trained = [f"{one.name} {one.version} ({one.licence})" for one in PACKAGES if not one.held_out]
    lines = [
        "builtin-mini. The encoder is initialised from all-MiniLM-L6-v2 (sentence-transformers, Apache-2.0).",
        "Training texts: our own templates, and texts of these packages:",
        *(f"  {', '.join(group)}," for group in _by(trained, 3)),
        "each named with its licence in train/SOURCES.md. Distilled in part from the network of jailguard 0.1.2",
        "(MIT or Apache-2.0).",
    ]
    return "\n".join(lines) + "\n"


def _by(names: list[str], size: int) -> list[list[str]]:
    found = iter(names)
    return list(iter(lambda: list(itertools.islice(found, size)), []))
