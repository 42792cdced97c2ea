"""Scalars: the YAML 1.2 core schema, and `${NAME}` references to environment variables.

YAML 1.1 readers turn `yes`, `on` and `12:30` into booleans and numbers. Here they are text: only `true` and `false` are
booleans, so a name such as `no` stays a name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


class Null:
    """The value that an explicit `null` (or nothing after a key) is read as: different from an absent key."""

    def __repr__(self) -> str:
        return "null"


NULL: Final = Null()
Scalar = str | int | float | bool | Null

_BOOLEANS: Final = {text: text.lower() == "true" for text in ("true", "True", "TRUE", "false", "False", "FALSE")}
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_INT: Final = re.compile(r"[-+]?[0-9]{1,400}")
_BASED_INT: Final = re.compile(r"0o[0-7]{1,400}|0x[0-9a-fA-F]{1,400}")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL_FLOAT: Final = re.compile(r"([-+]?)\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_REFERENCE: Final = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$\{")
_ONE_REFERENCE: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")


class BadReference(ValueError):
    """A `${` that does not start a plain `${NAME}`."""


def resolve(text: str) -> Scalar:
    """The value of an unquoted scalar."""
    if text in _NULLS:
        return NULL
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    number = _number(text)
    return text if number is None else number


def _number(text: str) -> int | float | None:
    if _INT.fullmatch(text):
        return int(text)
    if _BASED_INT.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    if match := _SPECIAL_FLOAT.fullmatch(text):
        return float("nan") if match[1] is None else float(f"{match[1]}inf")
    return None


@dataclass(frozen=True, slots=True)
class Substituted:
    """A scalar after substitution: its value, whether a reference was in it, and the names that are not set."""

    value: Scalar
    referenced: bool
    unset: tuple[str, ...]


def substitute(text: str, *, plain: bool, environ: Mapping[str, str]) -> Substituted:
    """Replace `${NAME}`; `$${` stands for a literal `${`.

    The result is typed again only when an unquoted scalar is one reference and nothing else, so that `port: ${PORT}`
    can be a number while `model-${SIZE}` and `"${TAG}"` stay text. When a name is not set, the text is kept as written.
    Raises `BadReference`.
    """
    if "${" not in text:
        return Substituted(resolve(text) if plain else text, referenced=False, unset=())
    unset: list[str] = []
    referenced = False

    def value_of(match: re.Match[str]) -> str:
        nonlocal referenced
        if match[0] == "$${":
            return "${"
        if match[1] is None:
            raise BadReference
        referenced = True
        if match[1] not in environ:
            unset.append(match[1])
            return match[0]
        return environ[match[1]]

    result = _REFERENCE.sub(value_of, text)
    if plain and not unset and _ONE_REFERENCE.fullmatch(text):
        return Substituted(resolve(result), referenced=True, unset=())
    return Substituted(result, referenced, tuple(dict.fromkeys(unset)))
