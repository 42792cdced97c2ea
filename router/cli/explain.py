"""`pointsman explain CONFIG REQUEST.json`: why a request would go where it goes, without a router."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from router.cli.loading import load_for_cli

if TYPE_CHECKING:
    from router.cli._types import Verbs
    from router.serving.offline import Offline


def add(verbs: Verbs) -> None:
    """Declare `explain`."""
    verb = verbs.add_parser("explain", help="show why a request would be routed as it would be")
    verb.add_argument("config", type=Path, help="the configuration")
    verb.add_argument(
        "request", type=Path, help="a Chat, Responses or Messages body, or {model, text}; - for standard input"
    )
    verb.add_argument("--json", action="store_true", help="print JSON, by the names of the preview API")
    verb.add_argument("--text", action="store_true", help="with --json: the request's own text, too")
    verb.add_argument(
        "--ready-within-s", type=float, default=120.0, help="seconds that local decision models may take to load"
    )
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Explain; 1 when the configuration or the request cannot be read, or a model cannot be asked such questions."""
    from router.explaining.posed import pose  # noqa: PLC0415 - each verb loads what it needs
    from router.serving.errors import NotServable  # noqa: PLC0415
    from router.serving.offline import explain_offline  # noqa: PLC0415
    from router.wire.errors import WireError  # noqa: PLC0415

    source = load_for_cli(arguments.config, serving=True)
    if source is None:
        return 1
    try:
        posed = pose(_read(arguments.request))
        with quiet():
            explained = asyncio.run(
                explain_offline(
                    source.plan,
                    posed,
                    environ=os.environ,
                    ready_within_s=arguments.ready_within_s,
                    starting=say_starting,
                )
            )
    except OSError as error:
        return _failed(f"{arguments.request}: cannot be read: {error.strerror}")
    except WireError as error:
        return _failed(f"{arguments.request}: {error.message}")
    except NotServable as error:
        return _failed("\n".join(f"{arguments.config}: {problem}" for problem in error.problems))
    for name, reason in explained.silent.items():
        sys.stderr.write(f"decision model {name!r} cannot be asked, so its questions are unknown: {reason}\n")
    return _show(explained, arguments)


def _show(explained: Offline, arguments: argparse.Namespace) -> int:
    from router.cli.pictures import draw  # noqa: PLC0415
    from router.explaining.preview import as_json  # noqa: PLC0415
    from router.wire.http import Reply  # noqa: PLC0415

    if explained.explanation is None:
        message = "the request cannot be read"
        if isinstance(explained.reply, Reply):
            message = json.loads(explained.reply.body)["error"]["message"]
        return _failed(f"{arguments.request}: {message}")
    if arguments.json:
        text = explained.text if arguments.text else None
        body = as_json(explained.explanation, explained.plan, trace=True, text=text)
        sys.stdout.write(json.dumps(body, indent=2) + "\n")
    else:
        draw(explained.explanation, sys.stdout)
    return 0


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the router's logs: what matters of them is said in words of this verb."""
    logger, nobody = logging.getLogger("pointsman"), logging.NullHandler()
    before, logger.propagate = logger.propagate, False
    logger.addHandler(nobody)
    try:
        yield
    finally:
        logger.removeHandler(nobody)
        logger.propagate = before


def _read(path: Path) -> bytes:
    return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()


def say_starting(name: str) -> None:
    """Tell a person who waits at a terminal what takes the time."""
    if sys.stderr.isatty():
        sys.stderr.write(f"starting decision model {name!r}\n")


def _failed(message: str) -> int:
    sys.stderr.write(message + "\n")
    return 1
