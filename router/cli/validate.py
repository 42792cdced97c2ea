"""`pointsman validate FILE`: every problem of a configuration at once, each with its place."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from router.asking.scanning.stage import composed_rules
from router.cli.loading import load_for_cli

COMPOSED = "its model has no set questions; it is asked one yes/no question per label (composed_noul)"

if TYPE_CHECKING:
    from router.cli._types import Verbs


def add(verbs: Verbs) -> None:
    """Declare `validate`."""
    verb = verbs.add_parser("validate", help="check a configuration without starting anything")
    verb.add_argument("file", type=Path)
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the problems to stderr; 1 when one of them is an error."""
    loaded = load_for_cli(arguments.file, serving=False)
    if loaded is None:
        return 1
    plan = loaded.plan
    for recipe in plan.recipes.values():
        for rule in composed_rules(recipe, plan.deployments):
            sys.stdout.write(f"{arguments.file}: recipe {recipe.name!r}, rule {rule!r}: {COMPOSED}\n")
    sys.stdout.write(
        f"{arguments.file}: valid. {len(plan.recipes)} recipe(s), {len(plan.models)} model(s), "
        f"{len(plan.deployments)} decision model(s), revision {plan.revision}\n"
    )
    return 0
