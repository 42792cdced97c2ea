"""Whether an artifact is what it says: its files, its golden answers, its numerics (`pointsman model check`)."""

from __future__ import annotations

from dataclasses import dataclass, field

from .adapters import adapter_for
from .artifact import open_artifact
from .digests import UNLISTED, listed
from .engine import Engine
from .golden import drifts
from .numerics import Independence, measure


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What a check found. `failures` say what is wrong and `warnings` what could not be proven, one a line.

    `listed`: there were digests to hold the files against.
    """

    name: str
    version: str
    sha256: str
    listed: bool
    device: str
    golden: int
    independence: Independence
    declared: str
    failures: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def check(artifact: str, device: str = "auto") -> CheckReport:
    """Verify, load and question an artifact (seconds).

    Raises ArtifactError or DeviceError when it cannot be loaded at all; what it answers wrong is in the report.
    """
    opened = open_artifact(artifact)
    card = opened.card
    engine = Engine(opened, device)
    adapter = adapter_for(opened, engine)
    failures = [str(drift) for drift in drifts(adapter)]
    warnings = []
    independence = measure(adapter)
    if independence.numerics != card.numerics:
        found = f"answers alone and in a batch differ by up to {independence.difference:.2g}"
        if card.numerics == "unmeasured":
            warnings.append(f"{found}: the card could say numerics: {independence.numerics}")
        elif independence.numerics == "batch_dependent":
            failures.append(f"{found}, but the card says {card.numerics}")
    if independence.numerics == "batch_dependent" and not failures:
        warnings.append("answers depend on what they are batched with: neither cache nor calibrate them")
    if not card.golden:
        warnings.append("the card has no golden questions: nothing says whether its answers are right")
    known = listed(opened.directory) is not None
    if not known:
        warnings.append(UNLISTED)
    return CheckReport(
        name=card.name,
        version=card.version,
        sha256=opened.sha256,
        listed=known,
        device=engine.device,
        golden=len(card.golden),
        independence=independence,
        declared=card.numerics,
        failures=failures,
        warnings=warnings,
    )
