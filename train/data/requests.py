"""Requests by difficulty, by the output that they want, and by whether facts should be checked."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from train.data import corpora
from train.data.domains import TEMPLATES, written
from train.data.packages import excerpt
from train.data.slots import fill, untidy
from train.data.sources import BIGBENCH
from train.data.words import mapping, section
from train.examples import DOMAINS, SINGLE, Example

COUNT: Final = 12_000
_TASKS: Final = ("complexity", "modality", "fact_check")
_FOLDER: Final = "bigbench-1.0.0/bigbench/benchmark_tasks"
_FACTS: Final = ("strategyqa", "general_knowledge", "known_unknowns")
_CLAIMS: Final = "misconceptions"
_RELATIONS: Final = "qa_wikidata"
_CLAIMED: Final = (
    "Is it true that {c}?",
    "Fact check: {c}",
    "{c} True or false?",
    "I read that {c} Is that correct?",
    "{c}",
)
_NO_FACTS: Final = ("math", "other")
_FREE: Final = 0.55


def examples(seed: int, count: int) -> Iterator[Example]:
    """The three tasks in turn, and their labels in turn."""
    rng = random.Random(f"requests {seed}")
    for number in range(count):
        task = _TASKS[number % len(_TASKS)]
        labels = SINGLE[task]
        label = labels[number // len(_TASKS) % len(labels)]
        text, source = _of(task, label, rng)
        yield Example(text, task, label, source)


def request_slots() -> dict[str, Sequence[str]]:
    """The slots of these templates: their own, and the terms of every field under its name."""
    return {**section("requests", "slots"), **_terms()}


def _of(task: str, label: str, rng: random.Random) -> tuple[str, str]:
    if task == "fact_check" and rng.random() > _FREE:
        return _checked(rng) if label == "true" else _unchecked(rng)
    text = fill(rng.choice(mapping("requests", task)[label]), request_slots(), rng)
    if rng.random() < 0.12 and label not in ("easy", "DIFFUSION"):
        # Length must not give the answer away: some requests come with the text that they are about.
        text += "\n\n" + written(mapping("domains", rng.choice(DOMAINS)), rng)
    return untidy(text, rng), TEMPLATES


def _checked(rng: random.Random) -> tuple[str, str]:
    """A question of fact out of a package."""
    questions = _questions()
    kind = rng.choice(("facts", "facts", "claims", "relations"))
    text = rng.choice(questions[kind])
    if kind == "claims":
        text = rng.choice(_CLAIMED).format(c=text)
    elif kind == "relations":
        # "The capital of X is" -> "What is the capital of X?"
        what = text.removesuffix(" is").removesuffix(" are")
        text = f"What is {what[0].lower()}{what[1:]}?"
    return untidy(text, rng), BIGBENCH.name


def _unchecked(rng: random.Random) -> tuple[str, str]:
    """Something to work out, not to look up."""
    field = rng.choice(_NO_FACTS)
    if field == "math":
        text, source = corpora.prompt("math", rng)
        return corpora.without_options(text), source
    stories = [pair for pair in corpora.prompts()["other"] if pair[0].startswith(("Play ", "Add ", "Book ", "Put "))]
    text, source = rng.choice(stories)
    return untidy(text, rng), source


@cache
def _questions() -> Mapping[str, Sequence[str]]:
    names = (*_FACTS, _CLAIMS, _RELATIONS)
    found: dict[str, list[str]] = {"facts": [], "claims": [], "relations": []}
    for name, data in excerpt(BIGBENCH, *(f"{_FOLDER}/{task}/task.json" for task in names)):
        task = name.removeprefix(_FOLDER + "/").removesuffix("/task.json")
        kind = "claims" if task == _CLAIMS else "relations" if task == _RELATIONS else "facts"
        found[kind] += dict.fromkeys(str(example["input"]) for example in json.loads(data)["examples"])
    return found


@cache
def _terms() -> Mapping[str, Sequence[str]]:
    # A slot's name has no blanks, a field's may: templates write it as it is, so that both spellings are there.
    named = {field: tuple(mapping("domains", field)["terms"]) for field in DOMAINS}
    return {**named, **{field.replace(" ", "_"): texts for field, texts in named.items()}}
