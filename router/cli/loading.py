"""How every verb reads a configuration: problems go to stderr, one a line, clickable as `file:line:column`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from router.config.load import Loaded, load
from router.config.problems import ConfigError
from router.runtime.artifact import describe


def load_for_cli(path: Path, *, serving: bool) -> Loaded | None:
    """The loaded configuration, or None after its problems were printed. `serving` makes unset `${ENV}` an error."""
    try:
        loaded = load(path, environ=os.environ, describe=describe, serving=serving)
    except ConfigError as error:
        for problem in error.problems:
            sys.stderr.write(problem.render() + "\n")
        errors = sum(problem.severity == "error" for problem in error.problems)
        sys.stderr.write(f"{path}: {errors} error(s)\n")
        return None
    for problem in loaded.warnings:
        sys.stderr.write(problem.render() + "\n")
    return loaded
