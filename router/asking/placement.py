"""Which process serves a managed deployment.

Deployments of one artifact on one device share one process, so a model is loaded once however many names it has
("Decision signal": reuse of a deployment avoids loading a model twice).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath

from router.config.deployments import Deployment


@dataclass(frozen=True, slots=True)
class Placement:
    """A runtime process by what it loads; equal placements are one process, also across configurations."""

    artifact: str
    device: str
    revision: str | None = None
    shared_context: bool = False

    @property
    def reference(self) -> str:
        """What names the model to the runtime: a directory, or a model of a hub with its commit."""
        return self.artifact if self.revision is None else f"{self.artifact}@{self.revision}"

    @property
    def served_name(self) -> str:
        """The model name that calls to this process carry: the artifact's own, so that a reload never changes it."""
        return PurePath(self.artifact).name or "model"

    @property
    def key(self) -> str:
        """A short stable name for sockets, logs and metrics."""
        parts = (self.reference, self.device, "shared" if self.shared_context else "")
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]
        kept = "".join(c if c.isascii() and (c.isalnum() or c in "-._") else "-" for c in self.served_name)
        return f"{kept[:24]}-{digest}"


def placement_of(deployment: Deployment) -> Placement | None:
    """The process of a managed deployment; None for an attached or remote one."""
    if deployment.artifact is None:
        return None
    return Placement(deployment.artifact, deployment.device, deployment.revision, deployment.shared_context)


def placements(deployments: Iterable[Deployment]) -> tuple[Placement, ...]:
    """The processes that these deployments need, each once, in the order they are first named."""
    found = (placement_of(deployment) for deployment in deployments)
    return tuple(dict.fromkeys(place for place in found if place is not None))


def model_name(deployment: Deployment) -> str:
    """The `model` that a call to this deployment carries."""
    place = placement_of(deployment)
    return deployment.served_name if place is None else place.served_name
