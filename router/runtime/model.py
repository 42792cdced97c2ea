"""A loaded model: the artifact, its adapter and its scheduler, and how a request goes through them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from router.questions import Option, Question, QuestionType, Unknown

from .adapters import adapter_for
from .artifact import Artifact, open_artifact
from .asking import Adapter, Answered, Asked, Failure, State
from .body import Block, Body
from .bounds import Bounds, Wishes
from .card import Card
from .devices import Placement
from .engine import Engine
from .errors import ArtifactError
from .golden import check_golden
from .handover import Handover
from .jobs import Computed
from .metrics import Metrics
from .off_loop import off_loop
from .rows import RowPlan
from .scheduler import Scheduler
from .texts import TextCache

log = logging.getLogger("pointsman.runtime")

_SHORT = 4096
"""Up to so many code points an idle worker tokenises a request itself; else the planner's thread does."""
_FEW_WORDS = 4
"""A state that is short for any model."""
_INLINE_ROWS = 8
"""Up to so many rows a request's answers are read on the event loop: a hop to a thread would cost as much."""


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
    """Answers bodies. One event loop uses it; tokenising and inference happen in threads of its own."""

    def __init__(self, artifact: Artifact, adapter: Adapter, engine: Engine, bounds: Bounds | None = None) -> None:
        """Take over a loaded adapter; starts the scheduler's thread."""
        self.card: Card = artifact.card
        self.sha256 = artifact.sha256
        self.engine = engine
        self._adapter = adapter
        self.metrics = Metrics(lambda: (self._scheduler.depth, self._scheduler.queued_tokens))
        self._bounds = bounds or Bounds()
        texts = getattr(adapter, "texts", None)
        if isinstance(texts, TextCache):
            self.metrics.looks_up(texts)
        self._scheduler = Scheduler(adapter.run, bounds=self._bounds, observer=self.metrics, rest=engine.rest)
        self._planner = ThreadPoolExecutor(1, "pointsman-planner")

    def admit(self, beside: int = 0) -> None:
        """Raises Overloaded when another request would find no room: those being prepared, and `beside`, count too."""
        scheduler, room = self._scheduler, self._bounds.requests - beside
        if scheduler.depth + scheduler.expected >= room:
            scheduler.make_room()
            if scheduler.depth + scheduler.expected >= room:
                raise scheduler.overloaded()

    async def ask(self, body: Body, deadline: float | None = None) -> Asking:
        """Answer every question of a body. `deadline` is on `time.monotonic`, in seconds.

        Raises Overloaded when the queue is full. A failed computation fails the questions, a passed deadline those
        that were not computed by then.
        """
        self.admit()
        blocks = body.blocks
        handover = Handover(self._scheduler, partial(self._plan, blocks), deadline)
        if not (_size(blocks) <= _SHORT and self._scheduler.lend(handover.prepare)):
            self._planner.submit(handover.prepare)
        plans, computed = await handover.computed()
        if isinstance(computed, Failure):
            return _failed(blocks, computed)
        asyncio.get_running_loop().call_soon(self.metrics.queued, computed.queue_s)  # once the answer is on its way
        if len(computed.raw) <= _INLINE_ROWS:
            outcomes = self._answer(blocks, plans, computed)
        else:
            outcomes = await off_loop(self._planner, partial(self._answer, blocks, plans, computed))
        return Asking(outcomes, computed.queue_s, computed.compute_s)

    def _plan(self, blocks: list[Block]) -> list[RowPlan]:
        return [
            self._adapter.plan(block.state, [posed.asked for posed in block.questions.values()]) for block in blocks
        ]

    def _answer(self, blocks: list[Block], plans: Sequence[RowPlan], computed: Computed) -> list[Outcome]:
        outcomes, first = [], 0
        for block, plan in zip(blocks, plans, strict=True):
            raw = computed.raw[first : first + len(plan.rows)]
            first += len(plan.rows)
            results = dict(zip(block.questions, self._adapter.answer(plan, raw), strict=True))
            unread = sum(row.tokens for row, found in zip(plan.rows, raw, strict=True) if not found)
            outcomes.append(Outcome(results, plan.input_tokens - unread))
        return outcomes

    def warm_up(self) -> None:
        """Answer one question about a short and a long state, so that the first client does not wait for allocation.

        Raises ArtifactError when there is no answer.
        """
        asked = _warm_question(self.card)
        # A model of bytes takes five tokens for a word and its space, and may refuse what is too long for it.
        share = 8 if self.card.reading.long == "reject" else 2
        for words in (_FEW_WORDS, self.card.limits.graph_tokens // share):
            plan = self._adapter.plan("word " * words, [asked])
            if words == _FEW_WORDS:
                self.engine.rest_with(plan.rows)
            answered = self._adapter.answer(plan, self._scheduler.submit(plan.rows).result().raw)[0]
            if isinstance(answered, Failure) or isinstance(answered.answer, Unknown):
                raise ArtifactError(self.card.name, "did not answer its warm-up question")

    def close(self) -> None:
        """Stop the threads; requests that wait are refused."""
        self._scheduler.close()
        self._planner.shutdown(wait=False)


def load_model(
    artifact: str,
    device: str | Placement = "auto",
    bounds: Bounds | Wishes | None = None,
    *,
    shared_context: bool = False,
) -> Model:
    """Open, verify, load, check and warm up an artifact (seconds). Raises ArtifactError or DeviceError by name.

    `bounds` that are not given, or only wished for in part, follow the device. `shared_context` keeps the tokens of
    states for the calls that follow, where a model does not read a state once.
    """
    start = time.monotonic()
    opened = open_artifact(artifact)
    engine = Engine(opened, device)
    if not isinstance(bounds, Bounds):
        bounds = (bounds or Wishes()).on(engine.device)
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
    if card.embeds:
        return Asked(Question(QuestionType.SIMILARITY, None, (Option("0", "warm up"),)))
    for kind in sorted(card.question_types):
        return Asked(Question(kind, "warm up", (Option("first"), Option("second"))))
    raise ArtifactError(card.name, "answers neither a preset nor a free question")


def _size(blocks: list[Block]) -> int:
    """Code points of plain-text states; structured ones count as long, so that they are never measured on the loop."""
    total = 0
    for block in blocks:
        state: State = block.state
        total += len(state) if isinstance(state, str) else _SHORT
        total += 16 * sum(len(posed.asked.question.options) for posed in block.questions.values())
    return total


def _failed(blocks: list[Block], failure: Failure) -> Asking:
    return Asking([Outcome(dict.fromkeys(block.questions, failure), 0) for block in blocks], 0.0, 0.0)
