"""The scan of a text by itself: its windows, and what planning them costs, without a model and without a request."""

from __future__ import annotations

import secrets
import time
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
    rule = WatchedRule("attack", Predicate(gte=0.5), threshold=0.5)
    given = Input("user", _LANE, text, (WatchedQuestion(_KEY, QuestionType.NOUL, (rule,)),))
    texts: list[str] = []
    began = time.process_time()
    machine = ScanMachine(
        [given], {_LANE: Lane(sizes, DeploymentPace())}, 1e9, lambda rule, found: True, secrets.randbelow
    )
    waiting: list[Ask] = machine.start(0.0)
    first = time.process_time()
    while waiting:
        ask = waiting.pop(0)
        texts.append(ask.text)
        waiting += machine.answered(ask.id, _HARMLESS, 0.0)
    return Scanned(tuple(dict.fromkeys(texts)), first - began, time.process_time() - began)
