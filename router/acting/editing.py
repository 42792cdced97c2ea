"""What a target makes of the request's bytes and headers on their way to the backend."""

from __future__ import annotations

from router.acting.target import Target
from router.wire.edit import replace_model
from router.wire.params import bound_params
from router.wire.reasoning import write_reasoning
from router.wire.surface import Format
from router.wire.system_prompt import write_system_prompt


def edited(format: Format, body: bytes, target: Target) -> bytes:
    """The body for the target's backend; the same object when it is as it should be.

    First the client's own words are bounded, then ours are written: what an operator blocks, the router may still set.
    """
    actions = target.actions
    if actions.params is not None:
        body = bound_params(format, body, actions.params)
    if actions.system_prompt is not None:
        body = write_system_prompt(format, body, actions.system_prompt.mode, actions.system_prompt.text)
    if target.reasoning is not None:
        body = write_reasoning(format, body, target.reasoning)
    return replace_model(body, target.model_id)


def edits(target: Target, requested: str | None) -> bool:
    """Whether the body may have to change for the target."""
    actions = target.actions
    changes = (actions.params, actions.system_prompt, target.reasoning)
    return requested != target.model_id or any(change is not None for change in changes)
