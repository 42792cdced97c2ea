"""Candidates of embedding rules are embedded before the plan that has them serves, so that no request waits for it.

The model keeps the vectors of texts that it has seen; what it did not get to here, the first request makes it do.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from router.asking.plan import prepare
from router.config.plan import QuestionRule
from router.generation import Generation
from router.questions import QuestionType, Unknown

logger = logging.getLogger("pointsman.serving")

WITHIN_S: Final = 60.0
"""How long a start or a reload waits for the candidates of all rules together."""
_ANY_TEXT: Final = "."


async def embed_candidates(generation: Generation, *, clock: Callable[[], float] = time.monotonic) -> None:
    """Have every candidate embedded. What cannot be done is logged, and serves all the same: never raises."""
    plan = generation.plan
    deadline = clock() + WITHIN_S
    for recipe, rule in _rules(generation):
        patient = replace(rule, timeout_ms=int(WITHIN_S * 1000))
        stage = prepare([patient], plan.deployments)
        texts = dict.fromkeys(stage.states, _ANY_TEXT)
        answer = (await generation.asker.ask(stage, texts, stage_deadline=deadline)).answers[rule.name]
        if isinstance(answer, Unknown):
            fields = {"recipe": recipe, "rule": rule.name, "deployment": rule.deployment, "reason": answer.reason.value}
            logger.warning("candidates are not embedded yet", extra={"fields": fields})


def _rules(generation: Generation) -> Iterator[tuple[str, QuestionRule]]:
    """The embedding rules of published recipes."""
    plan = generation.plan
    published = {*plan.entrypoints.values(), plan.default_entrypoint}
    for name, recipe in plan.recipes.items():
        if name in published:
            yield from ((name, one) for one in recipe.questions if one.question.type is QuestionType.SIMILARITY)
