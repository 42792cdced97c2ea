"""Requests by field: hand-written ones with slots, frames around terms of WordNet, and prompts that people wrote.

Fields come in turn, but what most requests are about, programs and everything else, comes more often.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from train.data import clauses, code, contests, corpora, wordnet
from train.data.slots import fill, untidy
from train.data.sources import DJANGO, WORDNET
from train.data.words import listed, mapping, section
from train.examples import DOMAINS, Example

COUNT: Final = 20_000
_TURN: Final = (*DOMAINS, *("computer science", "law", "other", "other", "other"))
TEMPLATES: Final = "templates"
_OWN: Final = 0.45
"""Up to here a request is hand-written, ..."""
_FRAMED: Final = 0.58
"""... then one around a term of WordNet; the rest are prompts of packages."""
_SPECIAL_SHARE: Final = 0.3
_SUBJECT: Final = re.compile(r"^Subject: [A-Za-z &]+\n+")


def examples(seed: int, count: int) -> Iterator[Example]:
    """Requests of all fields in turn."""
    rng = random.Random(f"domains {seed}")
    for number in range(count):
        field = _TURN[number % len(_TURN)]
        text, source = request(field, rng)
        yield Example(text, "domains", field, source)


def request(field: str, rng: random.Random) -> tuple[str, str]:
    """One request of a field, and where it is from."""
    special = _SPECIAL.get(field)
    if special is not None and rng.random() < _SPECIAL_SHARE:
        return special(rng), TEMPLATES
    chance = rng.random()
    if chance < _OWN:
        return written(mapping("domains", field), rng), TEMPLATES
    if chance < _FRAMED:
        return framed(wordnet.terms()[field], rng), WORDNET.name
    if field == "computer science" and rng.random() < 0.35:
        return untidy(code.request(rng), rng), DJANGO.name
    text, source = corpora.prompt(field, rng)
    text = _SUBJECT.sub("", text)
    return (corpora.without_options(text) if rng.random() < 0.6 else text), source


def written(own: Mapping[str, Any], rng: random.Random, framed_share: float = 0.68) -> str:
    """A request out of a field's own templates, or a frame around one of its terms."""
    terms = own["terms"]
    slots: dict[str, Sequence[str]] = {**section("frames", "slots"), **own.get("slots", {}), "t": terms, "u": terms}
    if rng.random() < framed_share:
        return untidy(fill(rng.choice(own["asks"]), slots, rng), rng)
    frames = section("frames", "ask")
    return untidy(fill(rng.choice(frames["plain" if rng.random() < 0.75 else "exam"]), slots, rng), rng)


def framed(terms: Sequence[wordnet.Term], rng: random.Random) -> str:
    """A question about a term, or one that gives its meaning and asks for the term."""
    first, second = rng.choice(terms), rng.choice(terms)
    frames = section("frames", "ask")
    kind = rng.choices(("plain", "exam", "gloss"), (4, 2, 4))[0]
    slots = {**section("frames", "slots"), "t": (first.word,), "u": (second.word,), "g": (first.gloss,)}
    return untidy(fill(rng.choice(frames[kind]), slots, rng), rng)


def everyday(rng: random.Random) -> str:
    """A harmless request of any field: what other tasks need as an ordinary text."""
    if rng.random() < 0.25:
        return rng.choice(listed("plain", "requests"))
    return written(mapping("domains", rng.choice(DOMAINS)), rng)


def _daily(rng: random.Random) -> str:
    """A request that belongs to no subject."""
    return untidy(fill(rng.choice(listed("everyday", "asks")), section("everyday", "slots"), rng), rng)


_SPECIAL: Final[Mapping[str, Callable[[random.Random], str]]] = MappingProxyType(
    {"computer science": contests.problem, "law": clauses.passage, "other": _daily}
)
