"""Names of people and streets in many countries, read out of the word lists of Faker without running it."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from train.data.packages import excerpt
from train.data.sources import FAKER

LOCALES: Final = (
    "cs_CZ", "da_DK", "de_DE", "en_GB", "en_IN", "en_NG", "en_US", "es_ES", "es_MX", "fi_FI", "fr_FR", "ga_IE", "hr_HR",
    "hu_HU", "id_ID", "it_IT", "lt_LT", "nl_NL", "no_NO", "pl_PL", "pt_BR", "pt_PT", "ro_RO", "sl_SI", "sv_SE", "sw",
    "tr_TR", "vi_VN", "yo_NG", "zu_ZA",
)  # fmt: skip
_TITLES: Final = ("Mr ", "Mr. ", "Mrs ", "Ms ", "Dr. ", "Prof. ", "Sr. ", "Herr ", "Frau ", "Mme ")
_STREETS: Final = (
    "{n} {w} Street", "{n} {w} St", "{n} {w} Avenue", "{n} {w} Road", "{n} {w} Lane", "{n} {w} Drive", "{n} {w} Close",
    "{w}straße {n}", "{w}weg {n}", "{w}gasse {n}", "{n} rue {w}", "{n} rue de la {w}", "{n}, avenue {w}",
    "Calle {w} {n}", "Calle de {w}, {n}", "Avenida {w} {n}", "Via {w} {n}", "Via {w}, {n}", "Rua {w}, {n}",
    "{w}straat {n}", "{w}laan {n}",
    "ul. {w} {n}", "{w}gatan {n}", "{w}vej {n}", "{w}katu {n}", "{n} {w} Court, Apt. {f}", "Flat {f}, {n} {w} Terrace",
    "{n} {w} Blvd, Suite {f}", "{n} {w} Way",
)  # fmt: skip
_TOWNS: Final = ("{c}", "{z} {c}", "{c} {z}", "{c}, {z}")


@dataclass(frozen=True, slots=True)
class People:
    """First and last names of one country."""

    first: Sequence[str]
    last: Sequence[str]


def person(rng: random.Random) -> str:
    """A name, mostly first and last, sometimes with a title, an initial, or a double name."""
    people = rng.choice(_people())
    first, last = rng.choice(people.first), rng.choice(people.last)
    form = rng.random()
    if form < 0.62:
        return f"{first} {last}"
    if form < 0.70:
        return f"{rng.choice(_TITLES)}{last}"
    if form < 0.76:
        return f"{first} {rng.choice(people.first)[0]}. {last}"
    if form < 0.81:
        return f"{first} {last}-{rng.choice(people.last)}"
    if form < 0.86:
        return f"{last}, {first}"
    return f"{first[0]}. {last}" if form < 0.9 else first


def first_name(rng: random.Random) -> str:
    """A first name alone."""
    return rng.choice(rng.choice(_people()).first)


def last_name(rng: random.Random) -> str:
    """A last name alone."""
    return rng.choice(rng.choice(_people()).last)


def address(rng: random.Random) -> str:
    """A street with a number, and often a town with or without a postal code."""
    word = rng.choice(_words()) if rng.random() < 0.5 else last_name(rng)
    number = str(rng.randrange(1, 400)) + rng.choice(("", "", "", "a", "B", "/3"))
    street = rng.choice(_STREETS).format(n=number, w=word, f=rng.randrange(1, 60))
    if rng.random() < 0.35:
        return street
    code = "".join(rng.choice("0123456789") for _ in range(rng.choice((4, 5, 5, 6))))
    if rng.random() < 0.15:
        district = f"{rng.choice('BCEGLMNSW')}{rng.randrange(1, 20)}"
        code = f"{district} {rng.randrange(1, 9)}{rng.choice('ABDEFG')}{rng.choice('HJLNP')}"
    return street + rng.choice((", ", ", ", "\n", " ")) + rng.choice(_TOWNS).format(c=rng.choice(_cities()), z=code)


@cache
def _people() -> Sequence[People]:
    found = []
    for values in _lists("person").values():
        first = [name for key, names in values.items() if key.startswith("first_names") for name in names]
        last = [name for key, names in values.items() if key.startswith("last_names") for name in names]
        if first and last:
            found.append(People(tuple(dict.fromkeys(first)), tuple(dict.fromkeys(last))))
    return tuple(found)


@cache
def _cities() -> Sequence[str]:
    lists = _lists("address").values()
    keys = ("cities", "city_names", "states", "counties")
    return tuple(dict.fromkeys(name for values in lists for key in keys for name in values.get(key, ())))


@cache
def _words() -> Sequence[str]:
    """Words that streets are named after: trees, hills and the like."""
    return [
        "Oak",
        "Maple",
        "Elm",
        "Cedar",
        "Park",
        "Church",
        "Station",
        "Mill",
        "Bridge",
        "Lake",
        "Hill",
        "Forest",
        "River",
        "Spring",
        "High",
        "Garden",
        "Linden",
        "Rosen",
        "Birken",
        "Bahnhof",
        "Haupt",
        "Schul",
        "Kirch",
        "Molen",
        "Dorps",
        "Kerk",
        "Skol",
        "Kyrko",
        "République",
        "Liberté",
        "Gare",
        "Victor-Hugo",
        "Mayor",
        "Sol",
        "Paz",
        "Roma",
        "Garibaldi",
        "Mazzini",
        "Flores",
        "Independência",
        "Polna",
        "Leśna",
        "Ogrodowa",
        "Vasa",
        "Strand",
        "Meadow",
        "Sunset",
        "Lincoln",
        "Washington",
        "Queen",
        "King",
        "Baker",
    ]


@cache
def _lists(kind: str) -> Mapping[str, Mapping[str, Sequence[str]]]:
    """The lists of texts that the providers of each country define, by the name they are given there."""
    patterns = [f"faker/providers/{kind}/{locale}/__init__.py" for locale in LOCALES]
    return {name: dict(_assigned(ast.parse(data))) for name, data in excerpt(FAKER, *patterns)}


def _assigned(module: ast.Module) -> Iterator[tuple[str, Sequence[str]]]:
    for body in (node.body for node in module.body if isinstance(node, ast.ClassDef)):
        for node in body:
            targets = (
                node.targets
                if isinstance(node, ast.Assign)
                else [node.target]
                if isinstance(node, ast.AnnAssign)
                else []
            )
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            for target in targets:
                if isinstance(target, ast.Name) and value is not None:
                    yield target.id, tuple(_texts(value))


def _texts(value: ast.expr) -> Iterator[str]:
    """The texts of a tuple, or the keys of weights, wherever they stand in the expression."""
    for node in ast.walk(value):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.strip():
            yield node.value.strip()
