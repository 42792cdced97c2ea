"""What training data is: one labelled text for one question, and the split that it belongs to.

A task is named like the preset that it teaches (`router/config/presets.json`, and the judges of the reference).
Labels are the option names of that preset; a noul has the labels `false` and `true`, a set has its labels in order,
joined by commas (an empty string: none of them), a span task has an empty label and says where its spans are.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

Split = Literal["train", "calibration", "test"]
Span = tuple[int, int, str]

NOUL: Final = ("false", "true")
HAZARDS: Final = (
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
DOMAINS: Final = (
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
SPANS: Final = ("PERSON", "ADDRESS", "DATE_OF_BIRTH")

SINGLE: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "domains": DOMAINS,
        "complexity": ("easy", "medium", "hard"),
        "modality": ("AR", "DIFFUSION", "BOTH"),
        "fact_check": NOUL,
        "jailbreak": NOUL,
        "safety": NOUL,
        "pii_present": NOUL,
        "refusal": NOUL,
    }
)
"""Tasks that read one text, and their labels."""

PAIRED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "user_feedback": ("satisfied", "need_clarification", "wrong_answer", "want_different", "no_feedback"),
        "turn_relation": ("new", "follow_up", "repeat", "correction"),
        "relevance": NOUL,
        "same_request": NOUL,
        "answer_check": NOUL,
        "tool_need": NOUL,
    }
)
"""Tasks that read two texts, and their labels. `previous` is the first text, `text` the second.

user_feedback: the answer before and the turn. turn_relation: the earlier turn and the turn. The others: the request,
and the document (relevance), the candidate (same_request), the answer (answer_check), or the tools, one a line as
`name: description` (tool_need)."""

HAZARD: Final = "hazard"
PII: Final = "pii"
TASKS: Final = frozenset((*SINGLE, *PAIRED, HAZARD, PII))

CALIBRATION_SHARE: Final = 0.1
TEST_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True)
class Example:
    """One labelled text.

    `source` names the generator or the package (a name of `train/SOURCES.md`), `lang` is a code of ISO 639-1, `spans`
    are `(start, end, type)` in code points of `text` with the end excluded, `previous` is the first text of a paired
    task.
    """

    text: str
    task: str
    label: str
    source: str
    lang: str = "en"
    spans: tuple[Span, ...] = ()
    previous: str = ""


@dataclass(frozen=True, slots=True)
class EvaluationSet:
    """Labelled text that nothing here was trained or calibrated on.

    `foreign` says that others wrote it; only such sets are quoted. `labels` are those that the set can hold, where they
    are not the task's own (the first version's eight domains): an answer then counts when it is among what the label
    stands for. A set named `filler` holds long harmless texts, which attacks are buried in.
    """

    name: str
    task: str
    source: str
    licence: str
    examples: tuple[Example, ...]
    foreign: bool = True
    labels: Mapping[str, tuple[str, ...]] | None = None


def normalised(text: str) -> str:
    """What two copies of one text have in common: compatibility form, lower case, white space as single blanks."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def fingerprint(text: str) -> str:
    """The hash by which training text is kept apart from evaluation text."""
    return hashlib.sha256(normalised(text).encode("utf-8", "surrogatepass")).hexdigest()


def split_of(example: Example) -> Split:
    """The split of an example: by its texts and source alone, the same in every run and for every task."""
    key = "\0".join((normalised(example.previous), normalised(example.text), example.source))
    share = int.from_bytes(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:8], "big") / 2**64
    if share < TEST_SHARE:
        return "test"
    return "calibration" if share < TEST_SHARE + CALIBRATION_SHARE else "train"


def hazards_of(label: str) -> tuple[str, ...]:
    """The labels of a set, taken apart."""
    return tuple(part for part in label.split(",") if part)


def problems(example: Example) -> list[str]:
    """What is wrong with an example, in words that name its task and source but never its text; empty if nothing is."""
    where = f"{example.task} of {example.source}"
    found = []
    if example.task not in TASKS:
        return [f"{where}: no such task, one of {', '.join(sorted(TASKS))}"]
    if not example.text.strip():
        found.append(f"{where}: an empty text")
    labels = SINGLE.get(example.task) or PAIRED.get(example.task)
    if labels is not None and example.label not in labels:
        found.append(f"{where}: label {example.label!r} is none of {', '.join(labels)}")
    if example.task == HAZARD and not set(hazards_of(example.label)) <= set(HAZARDS):
        found.append(f"{where}: label {example.label!r} holds a hazard that is none of the twelve")
    if (example.task in PAIRED) != bool(example.previous):
        found.append(f"{where}: `previous` is for paired tasks, and only for them")
    found += [f"{where}: span {span[:2]} of {span[2]} does not fit" for span in example.spans if _misfit(example, span)]
    return found


def _misfit(example: Example, span: Span) -> bool:
    start, end, kind = span
    return example.task != PII or not 0 <= start < end <= len(example.text) or kind not in SPANS


def without(examples: Iterable[Example], kept_apart: frozenset[str]) -> Iterator[Example]:
    """The examples of which neither text is one of `kept_apart` (fingerprints of evaluation sets)."""
    for example in examples:
        if fingerprint(example.text) in kept_apart or (
            example.previous and fingerprint(example.previous) in kept_apart
        ):
            continue
        yield example
