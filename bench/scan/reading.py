"""The scan of a text by itself: its windows, and what planning them costs, without a model and without a request."""

from __future__ import annotations

import secrets
import time
import tracemalloc
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from router.config.sizes import ScanWindow
from router.questions import NoulAnswer, Predicate, QuestionType
from router.scan.machine import Ask, Lane, ScanMachine
from router.scan.pace import DeploymentPace
from router.scan.reading import Input
from router.scan.rules import WatchedQuestion, WatchedRule

_LANE, _KEY = "guard", "q"
_HARMLESS = {_KEY: NoulAnswer(0.0)}


@dataclass(frozen=True, slots=True)
class Scanned:
    """The texts that are sent, in their order, and CPU seconds: until the first were there, and in all.

    What two windows share may be all that normalising changes in both: equal texts are sent once.
    """

    texts: tuple[str, ...]
    first_s: float
    planning_s: float


def scan(text: str, sizes: ScanWindow) -> Scanned:
    """Read a text whole with a model that finds nothing and takes no time."""
    texts: list[str] = []
    began = time.process_time()
    first = _read(text, sizes, lambda ask: texts.append(ask.text))
    return Scanned(tuple(dict.fromkeys(texts)), first - began, time.process_time() - began)


def memory(text: str, sizes: ScanWindow) -> int:
    """Bytes that reading a text whole takes at most beside the text itself, of those that Python hands out."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        _read(text, sizes, lambda ask: None)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def _read(text: str, sizes: ScanWindow, sent: Callable[[Ask], None]) -> float:
    """Tell every window that is sent. When the first ones were there, by this process's CPU clock."""
    rule = WatchedRule("attack", Predicate(gte=0.5), threshold=0.5)
    given = Input("user", _LANE, text, (WatchedQuestion(_KEY, QuestionType.NOUL, (rule,)),))
    lanes = {_LANE: Lane(sizes, DeploymentPace())}
    machine = ScanMachine([given], lanes, 1e9, lambda rule, found: True, secrets.randbelow)
    waiting = deque(machine.start(0.0))
    first = time.process_time()
    while waiting:
        ask = waiting.popleft()
        sent(ask)
        waiting.extend(machine.answered(ask.id, _HARMLESS, 0.0))
    return first
