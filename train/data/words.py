"""The hand-written words and templates of `train/data/words/`: one YAML file a subject, read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "words"


class WordsError(Exception):
    """A file of words is not of the expected form."""


@cache
def section(file: str, name: str) -> Mapping[str, Sequence[str]]:
    """A mapping of lists, such as the slots of a file. Raises WordsError."""
    value = _document(file).get(name)
    if not isinstance(value, dict) or not all(isinstance(part, list) for part in value.values()):
        raise WordsError(f"{file}.yaml: {name} must be a mapping of lists")
    return {str(key): tuple(str(text) for text in part) for key, part in value.items()}


@cache
def records(file: str, name: str) -> Sequence[Mapping[str, Sequence[str]]]:
    """A list of mappings whose values are texts or lists of texts, all given as lists. Raises WordsError."""
    value = _document(file).get(name)
    if not isinstance(value, list) or not all(isinstance(part, dict) for part in value):
        raise WordsError(f"{file}.yaml: {name} must be a list of mappings")
    return tuple(
        {key: tuple(map(str, part)) if isinstance(part, list) else (str(part),) for key, part in record.items()}
        for record in value
    )


@cache
def mapping(file: str, name: str) -> Mapping[str, Any]:
    """A part of any form, such as a field with its terms, slots and requests. Raises WordsError."""
    value = _document(file).get(name)
    if not isinstance(value, dict):
        raise WordsError(f"{file}.yaml: {name} must be a mapping")
    return value


@cache
def listed(file: str, name: str) -> Sequence[str]:
    """A list of texts. Raises WordsError."""
    value = _document(file).get(name)
    if not isinstance(value, list):
        raise WordsError(f"{file}.yaml: {name} must be a list")
    return tuple(str(text) for text in value)


@cache
def _document(file: str) -> Mapping[str, Any]:
    with (FOLDER / f"{file}.yaml").open(encoding="utf-8") as opened:
        document = yaml.safe_load(opened)
    if not isinstance(document, dict):
        raise WordsError(f"{file}.yaml: must be a mapping")
    return document
