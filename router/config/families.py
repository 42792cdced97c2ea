"""The families of signal rules: where their rules stand, what conditions call them, and which spellings are one.

A rule is known inside its recipe by its *key*: the written name of a `systemone` rule, and `family:name` for every
other family, so that two families may use one name. Names hold no colon.

Sources: `rulings.md` (Families and presets), `reference.md` 2.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

SYSTEMONE: Final = "systemone"
PROJECTION: Final = "projection"

LEARNED: Final = ("domain", "complexity", "modality", "fact_check", "user_feedback", "turn_relation")
"""Families that ask a decision model one well-known question."""

HEURISTIC: Final = (
    *("keyword", "language", "context", "structure", "conversation"),
    *("metadata", "authz", "input_modality", "event"),
)
"""Families that the router computes by itself."""

EMBEDDING: Final = "embedding"
"""The family that asks a model how alike the current turn is to texts of the configuration."""

GUARDS: Final = ("jailbreak", "safety", "pii")
"""Families that ask a decision model about the whole of what came in."""

FAMILIES: Final = (SYSTEMONE, *LEARNED, *GUARDS, EMBEDDING, *HEURISTIC)

SPELLINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{family: family for family in FAMILIES},
        "decision": SYSTEMONE,
        "domains": "domain",
        "user_feedbacks": "user_feedback",
        "embeddings": EMBEDDING,
        "keywords": "keyword",
        "languages": "language",
        "role_bindings": "authz",
        "events": "event",
    }
)
"""Every way to write a family, as a container of rules or as the type of a condition or input."""

LATER: Final = (
    *("kb", "kb_metric", "preference", "preferences"),
    *("classifier", "classifiers", "reask"),
)
"""Spellings of families that the dialect has and this version does not build."""


def rule_key(family: str, name: str) -> str:
    """What a rule is known by inside its recipe."""
    return name if family == SYSTEMONE else f"{family}:{name}"


def family_of(key: str) -> str:
    """The family of a rule by its key."""
    family, colon, _ = key.partition(":")
    return family if colon else SYSTEMONE


def written_name(key: str) -> str:
    """The name that the rule of a key was given."""
    return key.rpartition(":")[2]
