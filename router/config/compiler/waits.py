"""How long an answer is waited for: what is written, within what the deployment allows.

Source: `reference.md` 2.5 (fields of rules that ask a model).
"""

from __future__ import annotations

from typing import Final, Protocol

from router.config.compiler.context import Context
from router.config.deployments import Deployment
from router.config.problems import Path

DEFAULT_TIMEOUT_MS: Final = 1000


class Waits(Protocol):
    """Whatever of the dialect may say how long it waits."""

    @property
    def timeout_ms(self) -> int | None:
        """What is written."""

    def at(self, *keys: str | int) -> Path:
        """Where something of it stands."""


def wait_ms(context: Context, written: Waits, deployment: Deployment) -> int:
    """How long the answer of a rule, or of a selector, is waited for."""
    warn_of_cut(context, written, deployment)
    return written.timeout_ms or deployment.timeout_ms or DEFAULT_TIMEOUT_MS


def warn_of_cut(context: Context, written: Waits, deployment: Deployment) -> None:
    """Warn of a wait that is longer than a call to its deployment may take: nobody answers in the rest of it.

    A deployment of ours bounds no call.
    """
    bound = deployment.timeout_ms
    if deployment.endpoint is None or bound is None or written.timeout_ms is None or written.timeout_ms <= bound:
        return
    message = f"a call to deployment {deployment.name} ends after {bound} ms, and the wait with it"
    context.warn(written.at("timeout_ms"), message, f"write at most {bound}, or give the deployment more")
