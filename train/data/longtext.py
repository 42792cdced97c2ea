"""Long harmless text: documents, mail, court cases, stories and code, in pieces of about 60 to 510 tokens."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from train.data.corpora import long_prompts
from train.data.packages import excerpt
from train.data.sources import AGENTDOJO, BFCL, DJANGO
from train.examples import Example

COUNT: Final = 6_000
LEAST: Final = 240
MOST: Final = 2_300
"""Lengths of pieces in code points."""

_WORLDS: Final = ("agentdojo/data/suites/*/environment.yaml", "agentdojo/data/suites/*/include/*.yaml")
_BLANKS: Final = re.compile(r"\n{3,}")
_SUSPICIOUS: Final = re.compile(
    r"jailbreak|prompt injection|do anything now|system prompt"
    r"|(ignore|disregard|forget)\W+(all|any|the|previous|prior|your)\b.{0,30}\b(instruct|rule|prompt)",
    re.IGNORECASE | re.DOTALL,
)
"""What could be an attack: such pieces are left out, since nobody has looked at them."""


def examples(seed: int, count: int) -> Iterator[Example]:
    """Pieces that are no attack and harm nobody: one example for each of the two guards, in turn."""
    rng = random.Random(f"longtext {seed}")
    for number in range(count):
        text, source = piece(rng)
        yield Example(text, "jailbreak" if number % 2 else "safety", "false", source)


def piece(rng: random.Random, least: int = LEAST, most: int = MOST) -> tuple[str, str]:
    """A piece of a document, each length as likely as its double, and the package that it is of."""
    kinds = documents()
    while True:
        texts = rng.choice(kinds)
        text, source = rng.choice(texts)
        length = int(least * (most / least) ** rng.random())
        start = rng.randrange(max(1, len(text) - length))
        if start:
            start = max(text.find(mark, start, start + 200) for mark in ("\n", ". ", " "))
        cut = text[max(0, start) :][:length].strip()
        if len(cut) >= least // 2 and not _SUSPICIOUS.search(cut):
            return cut, source


@cache
def documents() -> Sequence[Sequence[tuple[str, str]]]:
    """Documents by kind, so that each kind is drawn as often. Downloads packages if need be (PackageError)."""
    folder = DJANGO.file.removesuffix(".tar.gz")
    kinds = (
        [(text, AGENTDOJO.name) for text in _texts(excerpt(AGENTDOJO, *_WORLDS))],
        [(text, BFCL.name) for text in _texts(excerpt(BFCL, "bfcl_eval/data/multi_turn_func_doc/*.json"))],
        [(text, DJANGO.name) for text in _texts(excerpt(DJANGO, f"{folder}/docs/*.txt"))],
        [(text, DJANGO.name) for text in _texts(excerpt(DJANGO, f"{folder}/django/*.py", f"{folder}/tests/*.py"))],
        list(long_prompts()),
        list(long_prompts()),
    )
    return tuple(tuple(pair for pair in kind if len(pair[0]) >= LEAST) for kind in kinds)


def _texts(files: Iterator[tuple[str, bytes]]) -> Iterator[str]:
    for _, data in files:
        yield _BLANKS.sub("\n\n", data.decode("utf-8", "replace")).strip()
