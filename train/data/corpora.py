"""Prompts of two collections of tests for language models, by field: what people really wrote, with a known subject.

A directory of `evals`, or a task of `bigbench`, belongs to one field as a whole. Left out are those whose own licence
does not allow it, those that only hold puzzles of characters, and those that an evaluation set may hold.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from train.data.fields import BIGBENCH_FIELDS, EVALS_FIELDS, FEW, FORMS, LONG_EVALS, MMLU_FIELDS, MOST
from train.data.packages import excerpt
from train.data.sources import BIGBENCH, EVALS
from train.data.words import FOLDER
from train.examples import fingerprint

_OPTION: Final = re.compile(r"\n\s*\(?[A-Ea-e][).:] .*", re.DOTALL)
_LONGEST: Final = 1600
_MARK: Final = 12
"""Hexadecimal digits of a fingerprint that tell the questions apart."""
_LONG: Final = 300


@cache
def groups() -> Mapping[str, tuple[tuple[tuple[str, str], ...], ...]]:
    """Prompts by field and by what they were part of, each with its package. Downloads packages if need be."""
    found: dict[str, list[tuple[tuple[str, str], ...]]] = {}
    exams: dict[str, list[tuple[str, str]]] = {}
    for field, texts in (*_of_evals(), *_of_bigbench()):
        kept = tuple(dict.fromkeys((text, source) for text, source in texts if 8 < len(text) <= _LONGEST))
        if len(kept) == 1:
            exams.setdefault(field, []).extend(kept)
        elif kept:
            found.setdefault(field, []).append(kept)
    for field, questions in exams.items():
        found.setdefault(field, []).append(tuple(dict.fromkeys(questions)))
    return MappingProxyType({field: tuple(parts) for field, parts in sorted(found.items())})


def prompt(field: str, rng: random.Random) -> tuple[str, str]:
    """One prompt of a field and its package. Large parts are drawn more often than small ones, not in proportion."""
    parts = groups()[field]
    weights = [len(part) ** 0.5 for part in parts]
    return rng.choice(rng.choices(parts, weights)[0])


@cache
def prompts() -> Mapping[str, tuple[tuple[str, str], ...]]:
    """All prompts by field, each with its package."""
    return MappingProxyType(
        {field: tuple(pair for part in parts for pair in part) for field, parts in groups().items()}
    )


@cache
def long_prompts() -> tuple[tuple[str, str], ...]:
    """Long prompts and passages of `evals`, of any field: court cases, stories, proposals, with the package's name."""
    patterns = [f"evals/registry/data/{name}/*.jsonl" for name in LONG_EVALS]
    found: list[str] = []
    for _, data in excerpt(EVALS, *patterns):
        texts = [text for row in _lines(data) for text in _all_texts(row) if len(text) > _LONG]
        found += list(dict.fromkeys(texts))[:MOST]
    return tuple((text, EVALS.name) for text in found)


def without_options(text: str) -> str:
    """A multiple-choice question without its choices, as somebody would ask it."""
    return _OPTION.sub("", text).strip() or text


def _of_evals() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    names = [name for group in EVALS_FIELDS.values() for name in group]
    rows: dict[str, list[Any]] = {}
    patterns = [f"evals/registry/data/{name}/*.jsonl" for name in (*names, "sandbagging")]
    for name, data in excerpt(EVALS, *patterns):
        rows.setdefault(name.split("/")[3], []).extend(_lines(data))
    for field, group in EVALS_FIELDS.items():
        for name in group:
            texts = dict.fromkeys(text for row in rows.get(name, []) for text in _asked(row))
            yield field, [(text, EVALS.name) for text in _some(name, texts)]
    fields = _exam_fields()
    for row in rows["sandbagging"]:
        known = MMLU_FIELDS.get(row.get("topic")) or fields.get(fingerprint(row["question"])[:_MARK])
        if known:
            yield known, [(row["question"].removesuffix("Answer:").strip(), EVALS.name)]


def _of_bigbench() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    tasks = {name: field for field, group in BIGBENCH_FIELDS.items() for name in group}
    folder = "bigbench-1.0.0/bigbench/benchmark_tasks"
    for name, data in excerpt(BIGBENCH, *(f"{folder}/{task}/task.json" for task in tasks)):
        task = name.removeprefix(folder + "/").removesuffix("/task.json")
        texts = dict.fromkeys(
            str(example["input"]).removeprefix("Utterance: ") for example in json.loads(data)["examples"]
        )
        yield tasks[task], [(text, BIGBENCH.name) for text in _some(task, texts)]


@cache
def _exam_fields() -> Mapping[str, str]:
    """The fields of exam questions that are given without their subject, by the beginning of their fingerprint."""
    listed: Mapping[str, list[str]] = json.loads((FOLDER / "exam_fields.json").read_text("utf-8"))
    return {mark: field for field, marks in listed.items() for mark in marks}


def _some(name: str, texts: Iterable[str]) -> list[str]:
    return list(texts)[: FEW if name in FORMS else MOST]


def _lines(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.decode("utf-8", "replace").splitlines() if line.strip()]


def _asked(row: Any) -> Iterator[str]:
    """What the person asks in a sample: its last message, or the first of an example that is given with it."""
    messages = row.get("input") if isinstance(row, dict) else None
    if messages is None and isinstance(row, dict):
        messages = row.get("sample", [])[:1]
    if isinstance(messages, str):
        yield messages.strip()
    elif isinstance(messages, list) and messages and isinstance(messages[-1], dict):
        yield str(messages[-1].get("content", "")).strip()


def _all_texts(row: Any) -> Iterator[str]:
    """Every text in a sample, however deep."""
    if isinstance(row, str):
        yield row.strip()
    elif isinstance(row, dict):
        for value in row.values():
            yield from _all_texts(value)
    elif isinstance(row, list):
        for value in row:
            yield from _all_texts(value)
