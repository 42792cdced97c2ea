"""`pointsman config schema | migrate`: the dialect for editors, and old files brought up to it."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from router.cli._types import Verbs


def add(verbs: Verbs) -> None:
    """Declare `config schema` and `config migrate`."""
    config = verbs.add_parser("config", help="the configuration dialect")
    actions = config.add_subparsers(dest="action", required=True, metavar="ACTION")
    schema = actions.add_parser("schema", help="print the JSON Schema, for editors")
    schema.set_defaults(run=print_schema)
    migrate = actions.add_parser("migrate", help="turn an older file into v0.5; shows the difference unless --write")
    migrate.add_argument("file", type=Path)
    migrate.add_argument("--write", action="store_true", help="replace the file; the old one is kept as FILE.bak")
    migrate.set_defaults(run=migrate_file)


def print_schema(_: argparse.Namespace) -> int:
    """Print the JSON Schema of the dialect."""
    from router.config.schema import config_schema  # noqa: PLC0415 - pydantic is slow to import

    sys.stdout.write(json.dumps(config_schema(), indent=2) + "\n")
    return 0


def migrate_file(arguments: argparse.Namespace) -> int:
    """Print (or with --write apply) the migration; 1 when the file cannot be migrated."""
    from router.config.migrate import migrate, unified_diff  # noqa: PLC0415
    from router.config.problems import ConfigError  # noqa: PLC0415

    path: Path = arguments.file
    try:
        old = path.read_text(encoding="utf-8")
        new, notes = migrate(old, str(path))
    except (OSError, UnicodeDecodeError) as error:
        sys.stderr.write(f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8 text'}\n")
        return 1
    except ConfigError as error:
        for problem in error.problems:
            sys.stderr.write(problem.render() + "\n")
        return 1
    for note in notes:
        sys.stderr.write(f"{path}: {note}\n")
    if new == old:
        sys.stderr.write(f"{path}: nothing to migrate\n")
    elif arguments.write:
        path.with_name(path.name + ".bak").write_text(old, encoding="utf-8")
        _replace(path, new)
        sys.stderr.write(f"{path}: migrated; the old file is {path.name}.bak\n")
    else:
        sys.stdout.write(unified_diff(old, new, str(path)))
        sys.stderr.write("nothing was changed; use --write to apply this\n")
    return 0


def _replace(path: Path, text: str) -> None:
    """Swap the file in one step, so that a router watching it never reads half of it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(name).chmod(path.stat().st_mode & 0o777)
    Path(name).replace(path)
