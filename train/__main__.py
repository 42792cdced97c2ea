"""`python -m train model` makes an artifact, `python -m train eval` measures one. Both say what they do on stderr."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from router.runtime.errors import ArtifactError
from train.data.packages import PackageError
from train.examples import EvaluationSet
from train.judging import open_judge
from train.reporting import Measured, evaluate, for_card, tables
from train.suites import by_others, by_this_project

_SHIPPED: Final = Path(__file__).parents[1] / "models" / "builtin-mini"
_LOOK: Final = 40
"""Examples of a set in a quick look, at least."""
_OUT: Final = Path(__file__).parents[1] / "var" / "model"


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status: 0, or 1 with one line that says what is wrong."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    logging.getLogger("train").setLevel(logging.INFO)
    try:
        return _model(options) if options.verb == "model" else _eval(options)
    except (ArtifactError, PackageError, ValueError) as error:
        print(f"train: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m train", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    model = verbs.add_parser("model", help="make an artifact from packages alone")
    model.add_argument("--out", type=Path, default=_OUT, help="folder of the artifact (var/model)")
    model.add_argument("--version", default="0.2.0")
    model.add_argument("--released", default=f"{datetime.now(UTC):%Y-%m-%d}", help="date in the card")
    model.add_argument("--steps", type=int, help="steps of training, else those of a full run")
    model.add_argument("--threads", type=int, default=2)
    model.add_argument("--seed", type=int)
    measuring = verbs.add_parser("eval", help="measure an artifact on text that nothing was trained on")
    measuring.add_argument("artifact", type=Path, nargs="?", default=_SHIPPED)
    for verb in (model, measuring):
        verb.add_argument("--quick", action="store_true", help="a tenth of everything: proves that it works, no more")
        verb.add_argument("--first", type=Path, help="artifact of an earlier version, to be measured beside it")
    return parser


def _model(options: argparse.Namespace) -> int:
    # Only making needs PyTorch: an artifact can be measured without it.
    from train.making import Making, finish, graphs_and_fits, prepared  # noqa: PLC0415
    from train.suites import held_out  # noqa: PLC0415

    if options.first is not None:
        open_judge(options.first)  # an hour later would be too late to hear that it cannot be read
    run = Making(options.out, options.version, options.released, threads=options.threads)
    run = run.changed(steps=options.steps, seed=options.seed)
    run = run.quick() if options.quick else run
    data = prepared(run)
    fits = graphs_and_fits(run, data)
    finish(run, fits, {})
    sets = _sizes([*by_others(), *by_this_project(), *held_out(data["test"])], options)
    ours = evaluate(run.folder, sets, quick=options.quick)
    first = evaluate(options.first, sets, quick=options.quick) if options.first is not None else None
    finish(run, fits, for_card(sets, ours), tables(sets, ours, first))
    print(tables(sets, ours, first))
    return 0


def _eval(options: argparse.Namespace) -> int:
    sets = _sizes([*by_others(), *by_this_project()], options)
    ours = evaluate(options.artifact, sets, quick=options.quick)
    first: Measured | None = evaluate(options.first, sets, quick=options.quick) if options.first is not None else None
    print(tables(sets, ours, first))
    print(json.dumps(for_card(sets, ours)["weak"]))
    return 0


def _sizes(sets: list[EvaluationSet], options: argparse.Namespace) -> list[EvaluationSet]:
    """The sets whole, or for a quick look every so many of their examples."""
    if not options.quick:
        return sets
    return [replace(one, examples=one.examples[:: max(1, len(one.examples) // _LOOK)]) for one in sets]


if __name__ == "__main__":
    sys.exit(main())
