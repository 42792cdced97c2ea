"""Personal data by others: the sentences of `presidio-evaluator`, filled with the people that it brings.

Of the fields of its templates those count that the model adds to rules: names, postal addresses (a street with its
number, and what follows of it) and dates of birth. Sentences with a street alone are left out: whether that is
somebody's address is anybody's guess. So are those with what rules find and nothing else.
"""

from __future__ import annotations

import csv
import io
import random
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from train.data.packages import excerpt
from train.data.sources import PRESIDIO
from train.examples import PII, Example, Span

ROUNDS: Final = 3
"""Fillings of each sentence."""

_FOLDER: Final = "presidio_evaluator/data_generator/raw_data"
_FIELD: Final = re.compile(r"\{\{([a-z_]+)\}\}")
_JOINT: Final = re.compile(r"[\s,>?]*")
"""What may stand between the parts of one address."""

_Row = Mapping[str, str]
_Value = Callable[[_Row, random.Random], str]


def _first(row: _Row, _: random.Random) -> str:
    return row["GivenName"]


def _last(row: _Row, _: random.Random) -> str:
    return row["Surname"]


def _whole(row: _Row, _: random.Random) -> str:
    return f"{row['GivenName']} {row['Surname']}"


def _address(row: _Row, _: random.Random) -> str:
    return f"{row['StreetAddress']}, {row['City']}, {row['StateFull']} {row['ZipCode']}"


def _born(row: _Row, _: random.Random) -> str:
    return row["Birthday"]


def _column(name: str) -> _Value:
    return lambda row, _: row[name]


def _number(least: int, most: int) -> _Value:
    return lambda _, chance: str(chance.randint(least, most))


_PERSON: Final[Mapping[str, _Value]] = MappingProxyType(
    {
        **dict.fromkeys(("person", "name", "name_male", "name_female"), _whole),
        **dict.fromkeys(("first_name", "first_name_male", "first_name_female", "first_name_nonbinary"), _first),
        **dict.fromkeys(("last_name", "last_name_male", "last_name_female"), _last),
    }
)
_PLACE: Final[Mapping[str, _Value]] = MappingProxyType(
    {
        "address": _address,
        "building_number": _number(1, 400),
        "street_name": lambda row, _: re.sub(r"\s*\d+\s*", " ", row["StreetAddress"]).strip(" ,"),
        "secondary_address": lambda _, chance: f"Apt. {chance.randint(1, 90)}",
        "city": _column("City"),
        "state_abbr": _column("State"),
        "postcode": _column("ZipCode"),
        "zipcode": _column("ZipCode"),
        "country": _column("CountryFull"),
    }
)
_PLAIN: Final[Mapping[str, _Value]] = MappingProxyType(
    {
        "organization": _column("Company"),
        "job": _column("Occupation"),
        "age": _number(18, 90),
        "year": _number(1950, 2020),
        "prefix": _column("Title"),
        "prefix_male": lambda *_: "Mr.",
        "prefix_female": lambda *_: "Ms.",
        "day_of_week": lambda *_: "Tuesday",
    }
)
_RULED: Final[Mapping[str, _Value]] = MappingProxyType(
    {"phone_number": _column("TelephoneNumber"), "email": _column("EmailAddress")}
)
"""What rules find: it may stand beside what the model is to find."""


@cache
def personal() -> tuple[Example, ...]:
    """Sentences with their spans, and harmless ones without any."""
    rows = _people()
    chance = random.Random("presidio sentences")
    found = [_filled(line, chance, rows) for line in _templates() for _ in range(ROUNDS if "{{" in line else 1)]
    return tuple(example for example in found if example is not None)


def _filled(template: str, chance: random.Random, rows: list[_Row]) -> Example | None:
    """One sentence; None where it says nothing about the model, or cannot be filled."""
    text, end = "", 0
    fields: list[tuple[int, int, str]] = []
    for found in _FIELD.finditer(template):
        name = found[1]
        value = _value(name, chance.choice(rows), chance)
        text += template[end : found.start()]
        if not value:
            return None
        fields.append((len(text), len(text) + len(value), name))
        text += value
        end = found.end()
    text += template[end:]
    spans = [(start, last, "PERSON") for start, last, name in fields if name in _PERSON]
    spans += [(start, last, "DATE_OF_BIRTH") for start, last, name in fields if name == "date_of_birth"]
    places = list(_places(text, [field for field in fields if field[2] in _PLACE]))
    if any(kind is None for _, _, kind in places):
        return None
    spans += [(start, last, kind) for start, last, kind in places if kind]
    if not spans and any(name in _RULED for _, _, name in fields):
        return None
    return Example(text, PII, "", PRESIDIO.name, spans=tuple(sorted(spans)))


def _value(name: str, row: _Row, chance: random.Random) -> str:
    if name == "date_of_birth":
        return _born(row, chance)
    for known in (_PERSON, _PLACE, _PLAIN, _RULED):
        if name in known:
            return known[name](row, chance)
    return ""


def _places(text: str, fields: list[Span]) -> Iterator[tuple[int, int, str | None]]:
    """Runs of address parts: an address where there is a number and a street, nothing (`""`) where there is none, and
    None where there is a street without a number."""
    runs: list[list[Span]] = []
    for field in fields:
        if runs and _JOINT.fullmatch(text, runs[-1][-1][1], field[0]):
            runs[-1].append(field)
        else:
            runs.append([field])
    for run in runs:
        names = {name for _, _, name in run}
        kind: str | None = ""
        if "address" in names or names >= {"building_number", "street_name"}:
            kind = "ADDRESS"
        elif "street_name" in names:
            kind = None
        yield run[0][0], run[-1][1], kind


def _templates() -> list[str]:
    ((_, data),) = excerpt(PRESIDIO, f"{_FOLDER}/templates.txt")
    lines = data.decode("utf-8").replace("\ufffd", "-").splitlines()
    return [line.replace("\\n", "\n").replace("\\,", ",").strip() for line in dict.fromkeys(lines) if line.strip()]


def _people() -> list[_Row]:
    ((_, data),) = excerpt(PRESIDIO, f"{_FOLDER}/FakeNameGenerator.com_3000.csv")
    return list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"))))
