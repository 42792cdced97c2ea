"""`pointsman replay diff --config NEW.yaml`: which recorded requests another configuration would route otherwise."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from router.cli.loading import load_for_cli
from router.cli.tables import table

if TYPE_CHECKING:
    from router.cli._types import Verbs
    from router.explaining.redeciding import Difference
    from router.observe.replay import Replays


def add(verbs: Verbs) -> None:
    """Declare `replay diff`."""
    replay = verbs.add_parser("replay", help="what was recorded of requests")
    actions = replay.add_subparsers(dest="action", required=True, metavar="ACTION")
    diff = actions.add_parser("diff", help="decide recorded requests again by another configuration")
    diff.add_argument("--config", type=Path, required=True, help="the new configuration")
    diff.add_argument(
        "--store", type=Path, help="an SQLite file of records; default: where the new configuration keeps them"
    )
    diff.add_argument("--newest", type=int, default=10_000, help="how many records to look at (default: 10000)")
    diff.add_argument("--json", action="store_true", help="print JSON")
    diff.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compare; 1 when the configuration is wrong or there are no records to read."""
    from router.explaining.redeciding import Redecider  # noqa: PLC0415 - each verb loads what it needs
    from router.observe.replay_sqlite import SqliteReplays  # noqa: PLC0415
    from router.serving.recording import replays_of  # noqa: PLC0415

    source = load_for_cli(arguments.config, serving=False)
    if source is None:
        return 1
    settings = source.plan.services.replay
    if arguments.store is None and settings is None:
        sys.stderr.write(f"{arguments.config}: does not record requests; name the records with --store\n")
        return 1
    try:
        if settings is None or arguments.store is not None:
            replays: Replays = SqliteReplays(arguments.store)
        else:
            replays = replays_of(settings, os.environ)
        found = Redecider(source.plan).difference(replays.each(newest=arguments.newest))
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(found.as_json(), indent=2) + "\n" if arguments.json else _shown(found))
    return 0


def _shown(found: Difference) -> str:
    body = found.as_json()
    lines = [f"{body['compared']} requests decided again: {body['same']} as before\n"]
    if body["changed"]:
        rows = [(str(one["count"]), one["from"], one["to"], " ".join(one["examples"])) for one in body["changed"]]
        lines.append("\n" + table(("COUNT", "WAS", "WOULD BE", "EXAMPLES"), rows))
    if found.undecided.count:
        examples = " ".join(found.undecided.examples)
        lines.append(
            f"\n{found.undecided.count} cannot be decided from their records: this configuration asks what they "
            f"were not asked, so that their text would be needed: {examples}\n\n"
        )
        missing = [(str(count), name) for name, count in found.missing.most_common()]
        lines.append(table(("COUNT", "NOT RECORDED"), missing))
    if found.unreadable:
        lines.append(f"\n{found.unreadable} are of requests that no recipe decided, or cannot be read\n")
    return "".join(lines)
