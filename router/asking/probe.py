"""What a server can do and whether it answers, asked of the server itself. Used while plans are prepared and by the
supervisor, never for a client's request.
"""

from __future__ import annotations

from router.asking.cards import read_capabilities, tiny_question
from router.asking.client import SystemOneClient
from router.asking.errors import CallError
from router.asking.line import deadline_ms
from router.asking.parse import read_answers
from router.asking.placement import model_name
from router.asking.plan import bind, prepare
from router.asking.replicas import Replicas
from router.config.deployments import Deployment
from router.config.plan import QuestionRule, StateKind
from router.questions import Capabilities, Unknown


async def probe(
    client: SystemOneClient | Replicas, deployment: Deployment, *, timeout_s: float = 5.0
) -> Capabilities | None:
    """What the server of a deployment that is not ours lists for its model; None when it does not answer or say."""
    try:
        return read_capabilities(await client.get("/v1/models", timeout_s), model_name(deployment))
    except CallError:
        return None


async def ready(client: SystemOneClient, deployment: Deployment, *, timeout_s: float = 5.0) -> bool:
    """Whether the model has answered a question just now: `/health` says so, and then it really does."""
    rule = QuestionRule(
        name="ready",
        deployment=deployment.name,
        question=tiny_question(deployment.capabilities),
        state=StateKind.USER,
        predicate=None,
        timeout_ms=max(1, int(timeout_s * 1000)),
    )
    stage = prepare([rule], {deployment.name: deployment})
    (call,) = bind(stage, {(deployment.name, StateKind.USER): "Hello, my name is Ada."}).calls
    try:
        await client.get("/health", timeout_s)
        answers = read_answers(await client.decide(call.body(deadline_ms(timeout_s)), timeout_s), call)
    except CallError:
        return False
    return not isinstance(answers["ready"], Unknown)
