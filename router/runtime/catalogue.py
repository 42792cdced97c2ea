"""Models that this machine has, in words for people (`pointsman model list` and `show`)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .artifact import BUILTIN, builtin_directory, describe, locate, read_card
from .card import Card
from .digests import UNLISTED, identity, listed
from .errors import ArtifactError
from .hub import pulled


@dataclass(frozen=True, slots=True)
class Entry:
    """A model in a list; `card` is None, and `problem` says why, when it cannot be used."""

    name: str
    artifact: str
    card: Card | None
    problem: str | None

    def as_row(self) -> tuple[str, ...]:
        """Cells of a table."""
        if self.card is None:
            return self.name, self.artifact, "-", "-", "-", "-", self.problem or "-"
        card = self.card
        asked = ",".join(sorted(kind.value for kind in card.question_types)) or "-"
        presets = str(len(card.presets))
        return self.name, self.artifact, asked, presets, str(card.limits.max_input_tokens), card.licence, card.quality

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        facts: dict[str, Any] = {"name": self.name, "artifact": self.artifact, "problem": self.problem}
        if self.card is not None:
            card = self.card
            facts |= {
                "model": card.name,
                "version": card.version,
                "question_types": sorted(card.question_types),
                "presets": {name: preset.type for name, preset in card.presets.items()},
                "max_input_tokens": card.limits.max_input_tokens,
                "licence": card.licence,
                "quality": card.quality,
            }
        return facts


def entry(name: str, artifact: str) -> Entry:
    """An entry by what a deployment's `artifact` says."""
    try:
        return Entry(name, artifact, read_card(locate(artifact)), None)
    except ArtifactError as error:
        return Entry(name, artifact, None, str(error))


def embedded() -> Entry:
    """The model that comes with the program."""
    found = entry(BUILTIN, BUILTIN)
    return found if found.card is None else Entry(found.card.name, BUILTIN, found.card, None)


def from_hub() -> list[Entry]:
    """The models that were pulled."""
    return [entry(reference.name, str(reference)) for reference, _ in pulled()]


def summary(directory: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Facts of a card, and its presets. Raises ArtifactError."""
    card = read_card(directory)
    asked = describe(str(directory))
    digests = listed(directory)
    limits = card.limits
    facts = {
        "name": card.name,
        "version": card.version,
        "directory": str(directory),
        "sha256": None if digests is None else identity(digests),
        "licence": card.licence,
        "quality": card.quality,
        "adapter": card.adapter,
        "question types": sorted(card.question_types),
        "compares texts": card.embeds,
        "modalities": list(card.modalities),
        "max input tokens": limits.max_input_tokens,
        "validated input tokens": limits.validated_input_tokens,
        "tokens in one pass": limits.graph_tokens,
        "long input": card.reading.long,
        "max options": limits.max_options,
        "max labels": limits.max_labels,
        "state read once": card.reading.state_once,
        "precision": card.precision,
        "numerics": card.numerics,
        "golden cases": len(card.golden),
    }
    presets = [
        {
            "name": name,
            "type": kind.value,
            "about": list(asked.preset_parts.get(name, ())),
            "threshold": asked.preset_thresholds.get(name),
            "labels": list(asked.preset_labels.get(name, ())),
        }
        for name, kind in asked.presets.items()
    ]
    return facts, presets


def warnings(directory: Path) -> list[str]:
    """What somebody who is about to rely on the model should know. Raises ArtifactError."""
    card = read_card(directory)
    found = []
    if card.quality != "evaluated" and directory == _builtin():
        found.append("experimental: measured on little data (README); do not let it refuse traffic on long text")
    elif card.quality != "evaluated":
        found.append("nobody vouches for its quality: measure it on your own data before a decision refuses traffic")
    if card.licence == "unknown":
        found.append("no licence is declared")
    if listed(directory) is None:
        found.append(UNLISTED)
    if card.numerics == "batch_dependent":
        found.append("answers depend on what they are batched with")
    return found


def _builtin() -> Path | None:
    try:
        return builtin_directory().resolve()
    except ArtifactError:
        return None
