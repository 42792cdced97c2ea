"""Personal data that no rule can find: names of people, postal addresses and dates of birth, with their places."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta
from types import MappingProxyType
from typing import Final

from train.data import corpora, longtext, names
from train.data.domains import TEMPLATES, written
from train.data.slots import fill
from train.data.sources import FAKER
from train.data.words import listed, mapping, section
from train.examples import Example, Span

COUNT: Final = 14_000
_NAMELESS: Final = ("biology", "chemistry", "computer science", "engineering", "economics")
"""Fields whose requests name nobody."""
_PLACE: Final = re.compile(r"\[(PERSON|FIRST|LAST|ADDRESS|BORN)\]")
_FORMS: Final = ("%d/%m/%Y", "%Y-%m-%d", "%d %B %Y", "%B %d, %Y", "%d.%m.%Y", "%m/%d/%Y", "%d-%m-%y", "%d %b %Y")
_OLDEST: Final = date(1930, 1, 1)
_DAYS: Final = 29_000


def examples(seed: int, count: int) -> Iterator[Example]:
    """Texts with and without personal data in turn."""
    rng = random.Random(f"personal {seed}")
    for number in range(count):
        if number % 2:
            text, spans = _with(rng)
            yield Example(text, "pii", "", FAKER.name, spans=spans)
        else:
            text, source = _without(rng)
            yield Example(text, "pii", "", source)


def born(rng: random.Random) -> str:
    """A date of birth in one of many forms."""
    return (_OLDEST + timedelta(days=rng.randrange(_DAYS))).strftime(rng.choice(_FORMS))


_KINDS: Final[Mapping[str, tuple[str, Callable[[random.Random], str]]]] = MappingProxyType(
    {
        "PERSON": ("PERSON", names.person),
        "FIRST": ("PERSON", names.first_name),
        "LAST": ("PERSON", names.last_name),
        "ADDRESS": ("ADDRESS", names.address),
        "BORN": ("DATE_OF_BIRTH", born),
    }
)


def _with(rng: random.Random) -> tuple[str, tuple[Span, ...]]:
    template = fill(rng.choice(listed("personal", "with")), {"q": (_plain(rng),)}, rng)
    text, spans = placed(template, rng)
    if rng.random() < 0.25:
        before = (longtext.piece(rng, 120, 900)[0] if rng.random() < 0.4 else _plain(rng)) + "\n"
        text, spans = before + text, tuple((start + len(before), end + len(before), kind) for start, end, kind in spans)
    if rng.random() < 0.2:
        text += "\n" + (longtext.piece(rng, 120, 900)[0] if rng.random() < 0.4 else _plain(rng))
    if rng.random() < 0.12 and len(text.lower()) == len(text):
        text = text.lower()
    return text, spans


def placed(template: str, rng: random.Random) -> tuple[str, tuple[Span, ...]]:
    """The template with made-up data in its places, and the spans of what stands there."""
    text = ""
    spans: list[Span] = []
    last = 0
    for found in _PLACE.finditer(template):
        kind, make = _KINDS[found[1]]
        text += template[last : found.start()]
        value = make(rng)
        spans.append((len(text), len(text) + len(value), kind))
        text += value
        last = found.end()
    text += template[last:]
    # "[FIRST] [LAST]" is one name.
    joined: list[Span] = []
    for span in spans:
        if joined and joined[-1][2] == span[2] == "PERSON" and text[joined[-1][1] : span[0]] == " ":
            joined[-1] = (joined[-1][0], span[1], span[2])
        else:
            joined.append(span)
    return text, tuple(joined)


def _without(rng: random.Random) -> tuple[str, str]:
    chance = rng.random()
    if chance < 0.6:
        slots = {**section("personal", "slots"), "q": (_plain(rng),)}
        text = fill(rng.choice(listed("personal", "without")), slots, rng)
        return (text if rng.random() < 0.85 else f"{_plain(rng)}\n{text}"), TEMPLATES
    if chance < 0.85:
        # Prompts of fields that are free of names.
        text, source = corpora.prompt(rng.choice(_NAMELESS), rng)
        return text, source
    return _plain(rng), TEMPLATES


def _plain(rng: random.Random) -> str:
    """A harmless request in which nobody is named."""
    if rng.random() < 0.4:
        return rng.choice(listed("plain", "requests"))
    return written(mapping("domains", rng.choice(_NAMELESS)), rng)
