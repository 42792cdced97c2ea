"""`embeddings` rules: which encoder compares the current turn with which texts, and when that matches.

Sources: `reference.md` 4.3 (embedding), 2.5 (fields of rules that ask a model).
"""

from __future__ import annotations

from router.config.compiler.catalogue import Catalogue
from router.config.compiler.context import PROBABILITY, Context
from router.config.compiler.questions import Asked
from router.config.compiler.waits import wait_ms
from router.config.deployments import Deployment, Dialect
from router.config.families import EMBEDDING, rule_key
from router.config.model.learned import EmbeddingRule
from router.config.plan import QuestionRule, StateKind
from router.questions import Option, Predicate, Question, QuestionType


def compile_embedding(context: Context, catalogue: Catalogue, rule: EmbeddingRule) -> Asked | None:
    """The rule resolved, or None after reporting what is wrong with it."""
    before = len(context.document.problems)
    deployment = catalogue.find(rule.deployment, rule.at("deployment"))
    if deployment is not None:
        _check_capability(context, rule, deployment)
    _check_candidates(context, rule)
    predicate = _predicate(context, rule)
    errors = any(problem.severity == "error" for problem in context.document.problems[before:])
    if errors or deployment is None or predicate is None:
        return None
    candidates = tuple(Option(str(index), text) for index, text in enumerate(rule.candidates))
    resolved = QuestionRule(
        name=rule_key(EMBEDDING, rule.name),
        deployment=deployment.name,
        question=Question(QuestionType.SIMILARITY, options=candidates),
        state=StateKind.USER,
        predicate=predicate,
        timeout_ms=wait_ms(context, rule, deployment),
        aggregation=rule.aggregation_method,
    )
    return Asked(resolved, None, PROBABILITY)


def _check_capability(context: Context, rule: EmbeddingRule, deployment: Deployment) -> None:
    """Only our runtimes compare texts; one that is attached says what it can when it is reached."""
    can = deployment.capabilities
    if deployment.dialect is Dialect.RUNTIME and (can is None or can.similarity):
        return
    where = rule.at("deployment") if rule.has("deployment") else rule.at()
    message = f"the model of deployment {deployment.name} does not tell how alike texts are"
    context.error(where, message, "name a deployment of provider model_runtime whose artifact is a text encoder")


def _check_candidates(context: Context, rule: EmbeddingRule) -> None:
    seen: set[str] = set()
    for index, text in enumerate(rule.candidates):
        path = rule.at_item("candidates", index)
        if not text.strip() and not context.is_unset(path):
            context.error(path, "a candidate must not be blank")
        elif text in seen:
            context.error(path, f"duplicate candidate {context.shown(text, path)}")
        seen.add(text)


def _predicate(context: Context, rule: EmbeddingRule) -> Predicate | None:
    if rule.threshold is not None and rule.predicate is not None:
        hint = "keep one: threshold: T is predicate: {gte: T}"
        context.error(rule.at("threshold"), "threshold and predicate cannot both be given", hint, key=True)
    if rule.predicate is not None:
        return context.predicate(rule.predicate, PROBABILITY)
    if rule.threshold is not None:
        return Predicate(gte=rule.threshold)
    if not any(context.is_cut(rule.at(key)) for key in ("threshold", "predicate")):
        hint = "which one fits depends on the encoder: compare a few texts with pointsman explain"
        context.error(rule.at(), "an embedding rule needs a threshold", hint, key=True)
    return None
