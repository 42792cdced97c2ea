"""Answers and pairs: refusals, whether a document or an answer serves a request, two requests for one thing, tools."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from train.data import corpora, wordnet
from train.data.domains import TEMPLATES, everyday
from train.data.packages import excerpt
from train.data.slots import fill, untidy
from train.data.sources import BFCL, PYRIT, WORDNET
from train.data.words import listed, records
from train.examples import DOMAINS, Example

COUNT: Final = 14_000
_TASKS: Final = ("refusal", "relevance", "same_request", "answer_check", "tool_need", "refusal", "tool_need")
_NEEDED: Final = ("live_multiple", "live_simple", "multiple", "simple_python", "parallel")
_NOT_NEEDED: Final = ("live_irrelevance", "irrelevance")
_MOST_TOOLS: Final = 6
_WORDY: Final = 700


def examples(seed: int, count: int) -> Iterator[Example]:
    """The tasks in turn, and their two labels in turn."""
    rng = random.Random(f"answers {seed}")
    makers = {
        "relevance": _relevance,
        "same_request": _same_request,
        "answer_check": _answer_check,
        "tool_need": _tool_need,
    }
    for number in range(count):
        task = _TASKS[number % len(_TASKS)]
        wanted = number // len(_TASKS) % 2 == 1
        label = "true" if wanted else "false"
        if task == "refusal":
            text, source = _refusal(wanted, rng)
            yield Example(text, task, label, source)
        else:
            previous, text, source = makers[task](wanted, rng)
            yield Example(text, task, label, source, previous=previous)


def _refusal(wanted: bool, rng: random.Random) -> tuple[str, str]:
    if rng.random() < 0.35:
        return rng.choice(_human_judged()[wanted]), PYRIT.name
    if not wanted:
        text = rng.choice(listed("answers", "texts"))
        gloss = rng.choice(wordnet.terms()[rng.choice(DOMAINS)])
        if rng.random() < 0.4:
            text = f"{gloss.word[0].upper()}{gloss.word[1:]} is {gloss.gloss}."
        return fill(
            rng.choice(listed("answers", "soft")), {"a": (text,), "l": (text[0].lower() + text[1:],)}, rng
        ), TEMPLATES
    if rng.random() < 0.08:
        return rng.choice(listed("answers", "foreign")), TEMPLATES
    opening, refusing = rng.choice(listed("answers", "opening")), rng.choice(listed("answers", "refusing"))
    text = (
        opening
        + (refusing if opening else refusing[0].upper() + refusing[1:])
        + rng.choice(listed("answers", "ending"))
    )
    if rng.random() < 0.15:
        text = f"You asked: {everyday(rng)}\n{text}"
    return text, TEMPLATES


def _relevance(wanted: bool, rng: random.Random) -> tuple[str, str, str]:
    """A request and a document: a text about the thing asked for, or one that only shares words or subject."""
    if rng.random() < 0.5:
        return _about_term(wanted, rng)
    pairs = records("answers", "pairs")
    pair = rng.choice(pairs)
    request = untidy(rng.choice((*pair["q"], *pair["same"])), rng)
    if wanted:
        return request, rng.choice(pair["good"]), TEMPLATES
    other = rng.choice([one for one in pairs if one is not pair])
    return request, rng.choice(pair["other"] if rng.random() < 0.6 else other["good"]), TEMPLATES


def _about_term(wanted: bool, rng: random.Random) -> tuple[str, str, str]:
    field = rng.choice(DOMAINS)
    first, second = rng.sample(wordnet.terms()[field], 2)
    asked = rng.choice(
        ("What is {t}?", "explain {t}", "{t} meaning", "Tell me what {t} is.", "define {t}", "what's a {t}")
    )
    told = first if wanted else second
    gloss = told.gloss if rng.random() < 0.3 and wanted else f"{told.word}: {told.gloss}"
    return asked.replace("{t}", first.word), gloss, WORDNET.name


def _same_request(wanted: bool, rng: random.Random) -> tuple[str, str, str]:
    kind = rng.random()
    if kind < 0.5:
        pair = rng.choice(records("answers", "pairs"))
        first, second = rng.sample((*pair["q"], *pair["same"]), 2)
        if wanted:
            return untidy(first, rng), untidy(second, rng), TEMPLATES
        return untidy(first, rng), untidy(rng.choice(pair["not"]), rng), TEMPLATES
    if kind < 0.8:
        scenes = records("scenes", "scenes")
        scene = rng.choice(scenes)
        first = rng.choice(scene["q"])
        key = "repeat" if wanted else rng.choice(("follow", "corr"))
        return first, untidy(rng.choice(scene[key]), rng), TEMPLATES
    first = everyday(rng)
    return first, (untidy(first, rng) if wanted else everyday(rng)), TEMPLATES


def _answer_check(wanted: bool, rng: random.Random) -> tuple[str, str, str]:
    """A request and an answer: one that answers it, or one that refuses, misses it or is about something else."""
    request, answer, source = _relevance(True, rng)
    if wanted:
        return request, answer, source
    kind = rng.random()
    if kind < 0.35:
        return request, _refusal(True, rng)[0], TEMPLATES
    if kind < 0.7:
        return request, rng.choice(listed("answers", "texts")), TEMPLATES
    return request, _relevance(True, rng)[1] if rng.random() < 0.5 else request, TEMPLATES


def _tool_need(wanted: bool, rng: random.Random) -> tuple[str, str, str]:
    """A request and the tools at hand. Requests of the test need one of theirs; talk needs none."""
    request, tools = rng.choice(_tooled()[wanted])
    if not wanted and rng.random() < 0.4:
        field = rng.choice(DOMAINS)
        request = (
            corpora.without_options(corpora.prompt(field, rng)[0])[:_WORDY] if rng.random() < 0.5 else everyday(rng)
        )
        return request, rng.choice(_tooled()[True])[1], TEMPLATES
    return request, tools, BFCL.name


@cache
def _human_judged() -> Mapping[bool, Sequence[str]]:
    """Answers that people judged to be refusals, or not."""
    found: dict[bool, list[str]] = {True: [], False: []}
    for _, data in excerpt(PYRIT, "pyrit/datasets/scorer_evals/refusal_scorer/*.csv"):
        lines = [line for line in data.decode("utf-8").splitlines(keepends=True) if not line.startswith("#")]
        for row in csv.DictReader(lines):
            if row["human_score"].strip() in ("0", "1"):
                found[row["human_score"].strip() == "1"].append(row["assistant_response"].strip()[:_WORDY])
    return {judged: tuple(text for text in texts if text) for judged, texts in found.items()}


@cache
def _tooled() -> Mapping[bool, Sequence[tuple[str, str]]]:
    found: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
    for needed, names in ((True, _NEEDED), (False, _NOT_NEEDED)):
        for _, data in excerpt(BFCL, *(f"bfcl_eval/data/BFCL_v4_{name}.json" for name in names)):
            for line in data.decode("utf-8").splitlines():
                row = json.loads(line)
                request = " ".join(
                    str(turn["content"]) for turn in row["question"][0] if turn["role"] == "user"
                ).strip()
                if request and row.get("function"):
                    found[needed].append((request[:_WORDY], _tools(row["function"])))
    return {needed: tuple(dict.fromkeys(pairs)) for needed, pairs in found.items()}


def _tools(functions: Sequence[Mapping[str, Any]]) -> str:
    lines = (
        f"{tool['name']}: {' '.join(str(tool.get('description', '')).split())[:160]}"
        for tool in functions[:_MOST_TOOLS]
    )
    return "\n".join(lines)
