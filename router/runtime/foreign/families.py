"""Which of the router's own presets a classifier answers, by the labels that it was trained with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

DOMAINS = (
    "biology",
    "business",
    "chemistry",
    "computer science",
    "economics",
    "engineering",
    "health",
    "history",
    "law",
    "math",
    "other",
    "philosophy",
    "physics",
    "psychology",
)
PII = (
    "AGE",
    "CREDIT_CARD",
    "DATE_TIME",
    "DOMAIN_NAME",
    "EMAIL_ADDRESS",
    "GPE",
    "IBAN_CODE",
    "IP_ADDRESS",
    "NRP",
    "ORGANIZATION",
    "PERSON",
    "PHONE_NUMBER",
    "STREET_ADDRESS",
    "TITLE",
    "US_DRIVER_LICENSE",
    "US_SSN",
    "ZIP_CODE",
)
HAZARDS = (
    "violence",
    "criminal_activity",
    "sexual_content",
    "child_exploitation",
    "hate",
    "harassment_abuse",
    "regulated_substances",
    "weapons",
    "self_harm",
    "privacy",
    "specialized_advice",
    "misinformation",
)
_HARMLESS = {"benign", "safe", "legit", "legitimate", "normal", "no injection", "not jailbreak", "clean", "ham"}
_ATTACKS = {"jailbreak", "injection", "prompt injection", "malicious", "attack", "indirect injection"}
_UNSAFE = {"unsafe", "harmful", "toxic"}
_CHOICES: dict[str, dict[str, str]] = {
    "domains": {label: label for label in DOMAINS} | {"mathematics": "math"},
    "complexity": {"easy": "easy", "medium": "medium", "hard": "hard"},
    "modality": {"ar": "AR", "diffusion": "DIFFUSION", "both": "BOTH"},
    "user_feedback": {
        "sat": "satisfied",
        "satisfied": "satisfied",
        "need clarification": "need_clarification",
        "wrong answer": "wrong_answer",
        "want different": "want_different",
        "no feedback": "no_feedback",
    },
}
_LEAST = 3
"""A choice of a family must have at least so many of its labels: `other` alone says nothing."""


def bare(label: str) -> str:
    """A label as it is compared: lower case, words apart."""
    return " ".join(label.replace("_", " ").replace("-", " ").lower().split())


def noul_preset(labels: Sequence[str]) -> tuple[str, dict[str, str]] | None:
    """The yes-or-no preset that these labels answer, and which side each label is."""
    words = [bare(label) for label in labels]
    for name, yes, no in (
        ("jailbreak", _ATTACKS, _HARMLESS),
        ("safety", _UNSAFE, _HARMLESS),
        ("fact_check", {"needs fact check", "fact check needed"}, {"no fact check needed"}),
    ):
        if set(words) <= yes | no and set(words) & yes and set(words) & no:
            return name, {label: "true" if word in yes else "false" for label, word in zip(labels, words, strict=True)}
    return None


def choice_preset(labels: Sequence[str]) -> tuple[str, dict[str, str]] | None:
    """The choice preset that these labels answer, and the family's own name of each."""
    words = [bare(label) for label in labels]
    for name, family in _CHOICES.items():
        if len(words) >= _LEAST and all(word in family for word in words):
            return name, {label: family[word] for label, word in zip(labels, words, strict=True)}
    return None


def is_hazard(labels: Sequence[str]) -> bool:
    """Whether these are the labels of the preset `hazard`."""
    return set(labels) == set(HAZARDS)


def pii_preset(labels: Sequence[str]) -> dict[str, Any] | None:
    """The `label_map` of the preset `pii`; None when these labels are of something else."""
    known = {bare(label): label for label in PII} | _OTHER_PII
    table = {label: known.get(bare(label)) for label in labels}
    found = sum(value is not None for value in table.values())
    return table if found >= max(2, len(labels) // 2) else None


_OTHER_PII = {
    "email": "EMAIL_ADDRESS",
    "phone": "PHONE_NUMBER",
    "name": "PERSON",
    "per": "PERSON",
    "org": "ORGANIZATION",
    "loc": "GPE",
    "location": "GPE",
    "ssn": "US_SSN",
    "address": "STREET_ADDRESS",
    "date": "DATE_TIME",
    "zip": "ZIP_CODE",
    "zipcode": "ZIP_CODE",
    "ip": "IP_ADDRESS",
    "iban": "IBAN_CODE",
}
