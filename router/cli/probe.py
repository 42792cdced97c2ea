"""`pointsman probe CONFIG PROBES.jsonl ...`: do requests still go where the operator expects them to go?"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from router.cli.explain import quiet, say_starting
from router.cli.loading import load_for_cli
from router.cli.tables import table

if TYPE_CHECKING:
    from router.cli._types import Verbs
    from router.config.plan import Plan
    from router.explaining.probes import Came, Judged, Probe, Tally


def add(verbs: Verbs) -> None:
    """Declare `probe`."""
    verb = verbs.add_parser("probe", help="check that requests are decided as expected")
    verb.add_argument("config", type=Path, help="the configuration")
    verb.add_argument("probes", type=Path, nargs="+", help="JSON lines: {request, format, headers, expect, known_miss}")
    verb.add_argument("--via", metavar="URL", help="send them to this listener instead of deciding them here")
    verb.add_argument(
        "--at-least",
        type=_share,
        metavar="SHARE",
        help="be content when this share (0 to 1) of each file comes out as expected, instead of all",
    )
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.add_argument(
        "--ready-within-s", type=float, default=120.0, help="seconds that local decision models may take to load"
    )
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Probe; 1 when something came out otherwise than expected, or configuration or probes cannot be read."""
    from router.explaining.probes import BadProbe, read_probes  # noqa: PLC0415 - each verb loads what it needs
    from router.serving.errors import NotServable  # noqa: PLC0415
    from router.serving.probing import Unreachable  # noqa: PLC0415

    source = load_for_cli(arguments.config, serving=True)
    if source is None:
        return 1
    names = {decision.name for recipe in source.plan.recipes.values() for decision in recipe.decisions}
    try:
        files = {path: read_probes(path.read_text("utf-8"), str(path), names) for path in arguments.probes}
        judged = asyncio.run(_judge(source.plan, [probe for one in files.values() for probe in one], arguments))
    except UnicodeDecodeError:
        return _failed("probes are text in UTF-8")
    except OSError as error:
        return _failed(f"{error.filename}: cannot be read: {error.strerror}")
    except (BadProbe, Unreachable) as error:
        return _failed(str(error))
    except NotServable as error:
        return _failed("\n".join(f"{arguments.config}: {problem}" for problem in error.problems))
    return _show(list(_by_file(files, judged)), arguments)


async def _judge(plan: Plan, probes: Sequence[Probe], arguments: argparse.Namespace) -> tuple[Judged, ...]:
    from router.serving.probing import rehearse, send  # noqa: PLC0415

    if arguments.via is not None:
        return await send(arguments.via, probes)
    with quiet():
        judged, silent = await rehearse(
            plan, probes, environ=os.environ, ready_within_s=arguments.ready_within_s, starting=say_starting
        )
    for name, reason in silent.items():
        sys.stderr.write(f"decision model {name!r} cannot be asked, so its questions are unknown: {reason}\n")
    return judged


def _by_file(files: dict[Path, tuple[Probe, ...]], judged: Sequence[Judged]) -> Iterator[tuple[Path, Sequence[Judged]]]:
    start = 0
    for path, probes in files.items():
        yield path, judged[start : start + len(probes)]
        start += len(probes)


def _show(files: Sequence[tuple[Path, Sequence[Judged]]], arguments: argparse.Namespace) -> int:
    from router.explaining.probes import Verdict, tally  # noqa: PLC0415

    counted = [(path, judged, tally(judged)) for path, judged in files]
    if arguments.json:
        sys.stdout.write(json.dumps({"files": [_as_json(*one) for one in counted]}, indent=2) + "\n")
    else:
        sys.stdout.write("\n".join(_as_text(*one) for one in counted))
    least = arguments.at_least
    tallies = [found for _, _, found in counted]
    if least is not None:
        return int(any(found.share < least for found in tallies))
    return int(any(found.verdicts[Verdict.WRONG] for found in tallies))


def _as_text(path: Path, judged: Sequence[Judged], found: Tally) -> str:
    from router.explaining.probes import Verdict  # noqa: PLC0415

    said = f"{path}: {found.right} of {found.total} as expected ({found.share:.0%})"
    known, fixed = found.verdicts[Verdict.KNOWN_MISS], found.verdicts[Verdict.FIXED]
    if known:
        said += f", {known} known to miss"
    if fixed:
        said += f"; {fixed} marked known_miss came out right: remove the mark"
    groups = [(name, str(right), str(number)) for name, (number, right) in found.groups.items()]
    text = said + "\n" + table(("EXPECTED", "RIGHT", "OF"), groups)
    rows = [
        (f"{path}:{one.probe.line}", one.verdict.value.replace("_", " "), _said(one.probe.expected), _came(one.came))
        for one in judged
        if one.verdict is not Verdict.RIGHT
    ]
    return text + table(("PROBE", "", "EXPECTED", "CAME"), rows) if rows else text


def _said(expected: Any) -> str:
    return " ".join(f"{key}={'none' if value is None else value}" for key, value in expected.items())


def _came(came: Came) -> str:
    return _said({"decision": came.decision, "model": came.model, "status": came.status})


def _as_json(path: Path, judged: Sequence[Judged], found: Tally) -> dict[str, Any]:
    return {
        "file": str(path),
        "probes": found.total,
        "as_expected": found.right,
        "verdicts": {verdict.value: number for verdict, number in found.verdicts.items()},
        "expected": {name: {"probes": number, "right": right} for name, (number, right) in found.groups.items()},
        "lines": [
            {
                "line": one.probe.line,
                "verdict": one.verdict.value,
                "expected": dict(one.probe.expected),
                "came": {"decision": one.came.decision, "model": one.came.model, "status": one.came.status},
            }
            for one in judged
        ],
    }


def _share(written: str) -> float:
    share = float(written)
    if not 0.0 <= share <= 1.0:
        raise argparse.ArgumentTypeError("a share is between 0 and 1")
    return share


def _failed(message: str) -> int:
    sys.stderr.write(message + "\n")
    return 1
