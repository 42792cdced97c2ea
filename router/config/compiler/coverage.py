"""Reading a whole input: what any rule that does so can say about it, and `systemone` rules that do.

Sources: "Long inputs" (Coverage and failures), `rulings.md` 3, 12c.
"""

from __future__ import annotations

from typing import Final

from router.config.compiler.context import Context
from router.config.deployments import Deployment, Dialect
from router.config.families import SYSTEMONE
from router.config.guards import GuardRule
from router.config.model.guards import GuardRule as WrittenGuard
from router.config.model.signals import SystemoneRule
from router.config.plan import QuestionRule
from router.questions import QuestionType

WINDOWED: Final = (QuestionType.NOUL, QuestionType.SET, QuestionType.SPAN)
"""What the answers of several windows can be put together for: the highest yes, and everything that was found."""

REMOTE_TIMEOUT_MS: Final = 1000


def check_unscanned(context: Context, rule: WrittenGuard | SystemoneRule) -> None:
    """Report what contradicts itself about windows that were not read."""
    if rule.min_coverage is not None and rule.on_unscanned != "best_effort":
        message = f"min_coverage has no effect with on_unscanned: {rule.on_unscanned}"
        context.error(rule.at("min_coverage"), message, "it belongs to on_unscanned: best_effort", key=True)


def check_coverage(context: Context, rule: SystemoneRule, kind: QuestionType) -> None:
    """Report a question that windows cannot answer, and keys that only a rule that reads everything has."""
    if rule.coverage == "full":
        check_unscanned(context, rule)
        if kind not in WINDOWED:
            message = f"a {kind} question cannot be answered window by window"
            hint = f"write coverage: truncate; full is for {', '.join(WINDOWED)}"
            context.error(rule.at("coverage"), message, hint)
        return
    for key in ("on_unscanned", "min_coverage", "normalise"):
        if rule.has(key):
            hint = "add coverage: full, or remove it"
            context.error(rule.at(key), f"{key} has no effect with coverage: truncate", hint, key=True)


def guard_timeout_ms(written: int | None, deployment: Deployment) -> int | None:
    """How long a window's answer is waited for; None: as long as the signals' deadline allows, as for a local model
    of which nobody wrote a bound (ruling 12c)."""
    if written is not None or deployment.timeout_ms is not None:
        return written or deployment.timeout_ms
    return None if deployment.dialect is Dialect.RUNTIME else REMOTE_TIMEOUT_MS


def whole_rule(rule: SystemoneRule, resolved: QuestionRule, deployment: Deployment) -> GuardRule:
    """A `systemone` rule that reads everything."""
    threshold, calibrated = _threshold(resolved, deployment)
    return GuardRule(
        name=resolved.name,
        family=SYSTEMONE,
        deployment=resolved.deployment,
        question=resolved.question,
        state=resolved.state,
        predicate=resolved.predicate,
        threshold=threshold,
        calibrated=calibrated,
        on_unscanned=rule.on_unscanned,
        min_coverage=rule.min_coverage,
        normalise=rule.normalise == "on",
        timeout_ms=guard_timeout_ms(rule.timeout_ms, deployment),
    )


def _threshold(rule: QuestionRule, deployment: Deployment) -> tuple[float | None, bool]:
    """Where near misses are measured from, and whether that is the model's own threshold."""
    bounds, question = rule.predicate, rule.question
    least = None if bounds is None else bounds.gt if bounds.gte is None else bounds.gte
    if question.type is QuestionType.NOUL or least is not None:
        return least, False
    if question.threshold is not None:
        return question.threshold, False
    can = deployment.capabilities
    own = can.preset_thresholds.get(question.preset or "") if can is not None else None
    return own, own is not None
