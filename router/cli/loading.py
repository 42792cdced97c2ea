"""How every verb reads a configuration: problems go to stderr, one a line, clickable as `file:line:column`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from router.config.problems import ConfigError
from router.runtime.artifact import describe
from router.serving.source import LastGood, Source, read_source


def load_for_cli(path: Path, *, serving: bool) -> Source | None:
    """The loaded configuration, or None after its problems were printed. `serving` makes unset `${ENV}` an error."""
    try:
        source = read_source(path, environ=os.environ, describe=describe, serving=serving)
    except ConfigError as error:
        for problem in error.problems:
            sys.stderr.write(problem.render() + "\n")
        errors = sum(problem.severity == "error" for problem in error.problems)
        sys.stderr.write(f"{path}: {errors} error(s)\n")
        return None
    for problem in source.warnings:
        sys.stderr.write(problem.render() + "\n")
    return source


def load_again(path: Path, last_good: LastGood | None) -> Source | None:
    """What served last, for a process that is started again; else what stands in the file, as `load_for_cli`."""
    kept = last_good.load(path, environ=os.environ, describe=describe) if last_good is not None else None
    return kept or load_for_cli(path, serving=True)
