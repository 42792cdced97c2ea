"""A loaded model: the artifact, its adapter and its scheduler, and how a request goes through them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from router.questions import Option, Question, Unknown

from .adapters import adapter_for
from .artifact import Artifact, open_artifact
from .asking import Adapter, Answered, Asked, Failure, FailureCode, State
from .body import Block, Body
from .card import Card
from .engine import Engine
from .errors import ArtifactError, DeadlineExceeded, Overloaded, RuntimeFault
from .golden import check_golden
from .metrics import Metrics
from .rows import RowPlan
from .scheduler import Bounds, Computed, Scheduler

log = logging.getLogger("pointsman.runtime")

_INLINE_CODE_POINTS = 4096
"""Below this a request is tokenised on the event loop: a hop to a thread would cost as much."""
_INLINE_ROWS = 8


@dataclass(frozen=True, slots=True)
class Outcome:
    """One state's results by question id, with the tokens that were read for them."""

    results: dict[str, Answered | Failure]
    input_tokens: int


@dataclass(frozen=True, slots=True)
class Asking:
    """A whole request's outcomes: the main state first, then the named ones; times in seconds."""

    outcomes: list[Outcome]
    queue_s: float
    compute_s: float


class Model:
    """Answers bodies. One event loop uses it; tokenising long text and inference happen in threads of its own."""

    def __init__(self, artifact: Artifact, adapter: Adapter, engine: Engine, bounds: Bounds | None = None) -> None:
        """Take over a loaded adapter; starts the scheduler's thread."""
        self.card: Card = artifact.card
        self.sha256 = artifact.sha256
        self.engine = engine
        self._adapter = adapter
        self.metrics = Metrics(lambda: self._scheduler.depth)
        self._bounds = bounds or Bounds()
        self._preparing = 0
        self._scheduler = Scheduler(adapter.run, bounds=self._bounds, observer=self.metrics)
        self._planner = ThreadPoolExecutor(1, "pointsman-planner")

    @property
    def full(self) -> bool:
        """Whether another request would be refused as overloaded; requests being prepared count too."""
        return self._scheduler.depth + self._preparing >= self._bounds.requests

    async def ask(self, body: Body, deadline: float | None = None) -> Asking:
        """Answer every question of a body. `deadline` is on `time.monotonic`, in seconds.

        Raises Overloaded when the queue is full. A passed deadline or a failed computation fails the questions.
        """
        if self.full:
            raise Overloaded("the queue is full")
        blocks = body.blocks
        self._preparing += 1
        self._scheduler.expect(1)
        try:
            plans = await self._off_loop(self._plan, blocks, inline=_size(blocks) <= _INLINE_CODE_POINTS)
        finally:
            self._preparing -= 1
            self._scheduler.expect(-1)
        rows = [row for plan in plans for row in plan.rows]
        future = self._scheduler.submit(rows, deadline)
        try:
            computed: Computed = await asyncio.wrap_future(future)
        except DeadlineExceeded:
            return _failed(blocks, Failure(FailureCode.DEADLINE_EXCEEDED, "the deadline passed before it was read"))
        except RuntimeFault:
            raise
        except Exception as error:
            log.error("a request failed in the graph: %s", type(error).__name__)
            return _failed(blocks, Failure(FailureCode.UNAVAILABLE, "the model failed on this request"))
        self.metrics.queued(computed.queue_s)
        outcomes = await self._off_loop(self._answer, blocks, plans, computed, inline=len(rows) <= _INLINE_ROWS)
        return Asking(outcomes, computed.queue_s, computed.compute_s)

    async def _off_loop(self, work: Callable[..., Any], *args: Any, inline: bool) -> Any:
        if inline:
            return work(*args)
        return await asyncio.get_running_loop().run_in_executor(self._planner, partial(work, *args))

    def _plan(self, blocks: list[Block]) -> list[RowPlan]:
        return [
            self._adapter.plan(block.state, [posed.asked for posed in block.questions.values()]) for block in blocks
        ]

    def _answer(self, blocks: list[Block], plans: list[RowPlan], computed: Computed) -> list[Outcome]:
        outcomes, first = [], 0
        for block, plan in zip(blocks, plans, strict=True):
            raw = computed.raw[first : first + len(plan.rows)]
            first += len(plan.rows)
            results = dict(zip(block.questions, self._adapter.answer(plan, raw), strict=True))
            outcomes.append(Outcome(results, plan.input_tokens))
        return outcomes

    def warm_up(self) -> None:
        """Answer one question about a short and a long state, so that the first client does not wait for allocation.

        Raises ArtifactError when there is no answer.
        """
        asked = _warm_question(self.card)
        for words in (4, self.card.limits.graph_tokens // 2):
            plan = self._adapter.plan("word " * words, [asked])
            answered = self._adapter.answer(plan, self._scheduler.submit(plan.rows).result().raw)[0]
            if isinstance(answered, Failure) or isinstance(answered.answer, Unknown):
                raise ArtifactError(self.card.name, "did not answer its warm-up question")

    def close(self) -> None:
        """Stop the threads; requests that wait are refused."""
        self._scheduler.close()
        self._planner.shutdown(wait=False, cancel_futures=True)


def load_model(
    artifact: str, device: str = "auto", bounds: Bounds | None = None, *, shared_context: bool = False
) -> Model:
    """Open, verify, load, check and warm up an artifact (seconds). Raises ArtifactError or DeviceError by name.

    `shared_context` keeps the tokens of states for the calls that follow, where a model does not read a state once.
    """
    start = time.monotonic()
    opened = open_artifact(artifact)
    engine = Engine(opened, device)
    adapter = adapter_for(opened, engine, shared_context=shared_context)
    check_golden(adapter)
    model = Model(opened, adapter, engine, bounds)
    try:
        model.warm_up()
    except BaseException:
        model.close()
        raise
    card = opened.card
    log.info("model %s %s ready on %s after %.1f s", card.name, card.version, engine.device, time.monotonic() - start)
    return model


def _warm_question(card: Card) -> Asked:
    for preset in card.presets.values():
        if preset.pair is None:
            return Asked(Question(preset.type, preset=preset.name))
    for kind in sorted(card.question_types):
        return Asked(Question(kind, "warm up", (Option("first"), Option("second"))))
    raise ArtifactError(card.name, "answers neither a preset nor a free question")


def _size(blocks: list[Block]) -> int:
    """Code points of plain-text states; structured ones count as long, so that they are never measured on the loop."""
    total = 0
    for block in blocks:
        state: State = block.state
        total += len(state) if isinstance(state, str) else _INLINE_CODE_POINTS
        total += 16 * sum(len(posed.asked.question.options) for posed in block.questions.values())
    return total


def _failed(blocks: list[Block], failure: Failure) -> Asking:
    return Asking([Outcome(dict.fromkeys(block.questions, failure), 0) for block in blocks], 0.0, 0.0)
