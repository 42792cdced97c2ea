"""`pointsman model list | show | pull | check | bench`: the decision models that this machine has."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from router.cli.loading import load_for_cli
from router.cli.tables import table

if TYPE_CHECKING:
    from router.cli._types import Verbs
    from router.runtime.hub import Progress

_ARTIFACT = "a directory, owner/name@commit, or `builtin`"


def add(verbs: Verbs) -> None:
    """Declare the five actions."""
    model = verbs.add_parser("model", help="list, describe, fetch, check and measure decision models")
    actions = model.add_subparsers(dest="action", required=True, metavar="ACTION")

    found = actions.add_parser("list", help="the embedded model, those that were pulled, and those of a configuration")
    found.add_argument("--config", type=Path, help="a configuration whose models to list, too")
    found.set_defaults(run=list_models)

    show = actions.add_parser("show", help="what a model can be asked, its limits, licence and identity")
    show.add_argument("artifact", help=_ARTIFACT)
    show.add_argument("--card", action="store_true", help="print the whole card as decision.json, derived parts too")
    show.set_defaults(run=show_model)

    pull = actions.add_parser("pull", help="fetch a model of a hub, or go on where a pull was cut off")
    pull.add_argument("reference", help="owner/name@commit; a branch is resolved to its commit")
    pull.set_defaults(run=pull_model)

    check = actions.add_parser(
        "check", help="verify files, ask the card's golden questions, measure batch independence"
    )
    check.add_argument("artifact", help=_ARTIFACT)
    check.set_defaults(run=check_model)

    bench = actions.add_parser("bench", help="measure speed by length, and whether the CPU quota got in the way")
    bench.add_argument("artifact", help=_ARTIFACT)
    bench.add_argument("--seconds", type=float, default=0.5, help="for each length and kind (default: 0.5)")
    bench.add_argument("--longest", type=int, default=8192, help="longest row in tokens (default: 8192)")
    bench.set_defaults(run=bench_model)

    for action in (check, bench):
        action.add_argument("--device", default="auto", help="auto, cpu or cuda:N")
    for action in (found, show, check, bench):
        action.add_argument("--json", action="store_true", help="print JSON")


def list_models(arguments: argparse.Namespace) -> int:
    """One line a model; 1 when the configuration is wrong."""
    from router.runtime.catalogue import embedded, entry, from_hub  # noqa: PLC0415

    entries = [embedded(), *from_hub()]
    if arguments.config is not None:
        source = load_for_cli(arguments.config, serving=False)
        if source is None:
            return 1
        for deployment in source.plan.deployments.values():
            if deployment.artifact is not None:
                commit = f"@{deployment.revision}" if deployment.revision else ""
                entries.append(entry(deployment.name, f"{deployment.artifact}{commit}"))
    if arguments.json:
        return _json([found.as_json() for found in entries])
    head = ("NAME", "ARTIFACT", "ASKED", "PRESETS", "TOKENS", "LICENCE", "STATE")
    sys.stdout.write(table(head, [found.as_row() for found in entries]))
    return 0


def show_model(arguments: argparse.Namespace) -> int:
    """The summary of a card; 1 when there is no such model."""
    from router.runtime.artifact import card_data, locate  # noqa: PLC0415
    from router.runtime.catalogue import summary, warnings  # noqa: PLC0415
    from router.runtime.errors import RuntimeFault  # noqa: PLC0415

    try:
        directory = locate(arguments.artifact)
        if arguments.card:
            return _json(card_data(directory))
        facts, presets = summary(directory)
        warned = warnings(directory)
    except RuntimeFault as error:
        return _failed(error)
    if arguments.json:
        named = {name.replace(" ", "_"): value for name, value in facts.items()}
        return _json({**named, "presets": presets, "warnings": warned})
    sys.stdout.write(table((), [(name, _plain(value)) for name, value in facts.items()]))
    if presets:
        rows = [
            tuple(_plain(preset[key]) for key in ("name", "type", "about", "threshold", "labels")) for preset in presets
        ]
        sys.stdout.write("\n" + table(("PRESET", "TYPE", "ABOUT", "THRESHOLD", "LABELS"), rows))
    for warning in warned:
        sys.stderr.write(f"warning: {warning}\n")
    return 0


def pull_model(arguments: argparse.Namespace) -> int:
    """Fetch; 1 when it did not come whole."""
    from router.runtime.errors import RuntimeFault  # noqa: PLC0415
    from router.runtime.hub import parse_reference, pull  # noqa: PLC0415

    reference = parse_reference(arguments.reference)
    if reference is None:
        sys.stderr.write(f"{arguments.reference}: not a model of a hub; write owner/name@commit\n")
        return 2
    if reference.revision is None:
        reference = type(reference)(reference.owner, reference.name, "main")
    shown = _Bar()
    try:
        exact, directory = pull(reference, progress=shown)
    except RuntimeFault as error:
        shown.end()
        return _failed(error)
    shown.end()
    sys.stdout.write(f"{exact}\n{directory}\n")
    if exact != reference:
        sys.stderr.write(f"{reference.revision} is {exact.revision} today; write that: it will not change\n")
    return 0


def check_model(arguments: argparse.Namespace) -> int:
    """What was checked; 1 when something is not as the artifact says."""
    from dataclasses import asdict  # noqa: PLC0415

    from router.runtime.checking import check  # noqa: PLC0415
    from router.runtime.errors import RuntimeFault  # noqa: PLC0415

    try:
        report = check(arguments.artifact, arguments.device)
    except RuntimeFault as error:
        return _failed(error)
    if arguments.json:
        _json({**asdict(report), "numerics": report.independence.numerics, "ok": not report.failures})
        return 1 if report.failures else 0
    measured = report.independence
    facts = [
        ("model", f"{report.name} {report.version} on {report.device}"),
        ("files", f"{'intact' if report.listed else 'not listed'}, sha256 {report.sha256}"),
        ("golden", f"{report.golden} cases, {len(report.failures)} failures" if report.golden else "none in the card"),
        ("batches", f"{measured.numerics}: {measured.answers} answers differ by at most {measured.difference:.1e}"),
    ]
    sys.stdout.write(table((), facts))
    for warning in report.warnings:
        sys.stderr.write(f"warning: {warning}\n")
    for failure in report.failures:
        sys.stderr.write(f"error: {failure}\n")
    return 1 if report.failures else 0


def bench_model(arguments: argparse.Namespace) -> int:
    """The table of lengths; 1 when the model cannot be loaded."""
    from dataclasses import asdict  # noqa: PLC0415

    from router.runtime.benching import bench  # noqa: PLC0415
    from router.runtime.errors import RuntimeFault  # noqa: PLC0415

    try:
        report = bench(arguments.artifact, arguments.device, seconds=arguments.seconds, longest=arguments.longest)
    except RuntimeFault as error:
        return _failed(error)
    if arguments.json:
        return _json(asdict(report))
    plan = report.threads
    quota = "none" if plan.quota is None else f"{plan.quota:g} cores"
    sys.stdout.write(f"{report.name} {report.version} on {report.device}, {report.engine}\n")
    sys.stdout.write(f"threads {plan.threads} ({plan.reason}); affinity {plan.affinity}, quota {quota}\n")
    if report.throttled is not None:
        sys.stdout.write(f"throttled {report.throttled.throttled} of {report.throttled.periods} periods\n")
    head = ("TOKENS", "P50 MS", "P99 MS", "TOKENS/S", "BATCH", "TOKENS/S")
    rows = [
        (
            str(line.tokens),
            f"{line.p50_ms:.1f}",
            f"{line.p99_ms:.1f}",
            f"{line.alone_tokens_s:,.0f}",
            str(line.batch),
            f"{line.batch_tokens_s:,.0f}",
        )
        for line in report.lines
    ]
    sys.stdout.write("\n" + table(head, rows, right=True))
    for warning in report.warnings:
        sys.stderr.write(f"warning: {warning}\n")
    return 0


class _Bar:
    """Progress on stderr: one line that is rewritten on a terminal, a line every tenth elsewhere."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._told = -1

    def __call__(self, progress: Progress) -> None:
        share = 100 if not progress.total else 100 * progress.done // progress.total
        step = share if self._live else share // 10
        if step == self._told:
            return
        self._told = step
        text = f"{share:3d} %  {progress.done / 1e6:,.1f} of {progress.total / 1e6:,.1f} MB  {progress.file}"
        sys.stderr.write(f"\r\x1b[K{text}" if self._live else f"{text}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Leave the line."""
        if self._live and self._told >= 0:
            sys.stderr.write("\n")


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value) or "-"
    return "-" if value is None else str(value)


def _json(value: Any) -> int:
    json.dump(value, sys.stdout, indent=1, ensure_ascii=False, default=str)
    sys.stdout.write("\n")
    return 0


def _failed(error: Exception) -> int:
    sys.stderr.write(f"{error}\n")
    return 1
