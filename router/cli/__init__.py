"""The `pointsman` command: one module a verb.

Each verb module offers `add(subparsers)`, which declares its arguments and sets `run`, a callable from the parsed
arguments to an exit status: 0 done, 1 the thing asked about is wrong (an invalid configuration, say), 2 wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from router import __version__
from router.cli import config, envoy, explain, model, probe, replay, runtime, serve, validate

_VERBS = (serve, validate, explain, probe, replay, config, envoy, model, runtime)


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    root = argparse.ArgumentParser(
        prog="pointsman", description="Route LLM requests behind Envoy by asking small decision models."
    )
    root.add_argument("--version", action="version", version=f"pointsman {__version__}")
    verbs = root.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in _VERBS:
        verb.add(verbs)
    return root


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit status."""
    arguments = parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
