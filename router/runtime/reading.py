"""Strict reading of a JSON object: every key is taken once by type, and what nobody took is an error.

Used for artifact cards only. Errors name the file and the path of the key (`decision.json: limits.graph_tokens`).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping
from typing import Any

from .errors import ArtifactError


class _Required:
    """Marks a key without a default."""


REQUIRED = _Required()


class Reader:
    """A JSON object being read. Call `done` after the last key."""

    def __init__(self, file: str, data: object, path: str = "") -> None:
        self._file = file
        self._path = path
        self._taken: set[str] = set()
        if not isinstance(data, dict):
            raise ArtifactError(self.where(), f"must be an object, not {_kind(data)}")
        self._data: dict[str, Any] = data

    def where(self, key: str | None = None) -> str:
        """File and dotted path of `key`, or of the object itself."""
        path = self._path if key is None else f"{self._path}.{key}" if self._path else key
        return f"{self._file}: {path}" if path else self._file

    def fail(self, key: str | None, message: str) -> ArtifactError:
        """An error at `key`, to be raised by the caller."""
        return ArtifactError(self.where(key), message)

    def __contains__(self, key: str) -> bool:
        return key in self._data

    def __iter__(self) -> Iterator[str]:
        """Names present, in file order."""
        return iter(self._data)

    def raw(self, key: str, default: Any = REQUIRED) -> Any:
        """The value as JSON gave it."""
        self._taken.add(key)
        if key in self._data:
            return self._data[key]
        if default is REQUIRED:
            raise self.fail(key, "missing")
        return default

    def text(self, key: str, default: Any = REQUIRED) -> str:
        """A non-empty string."""
        value = self.raw(key, default)
        if not isinstance(value, str) or not value:
            raise self.fail(key, f"must be a non-empty string, not {_kind(value)}")
        return value

    def one_of(self, key: str, allowed: tuple[str, ...], default: Any = REQUIRED) -> str:
        """One of a closed set of strings."""
        value = self.raw(key, default)
        if not isinstance(value, str) or value not in allowed:
            raise self.fail(key, f"must be one of {', '.join(allowed)}")
        return str(value)

    def integer(self, key: str, default: Any = REQUIRED, *, least: int = 0) -> int:
        """A whole number of at least `least`."""
        value = self.raw(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.fail(key, f"must be a whole number >= {least}")
        return value

    def number(self, key: str, default: Any = REQUIRED) -> float:
        """A finite number."""
        value = self.raw(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise self.fail(key, "must be a finite number")
        return float(value)

    def flag(self, key: str, default: Any = REQUIRED) -> bool:
        """true or false."""
        value = self.raw(key, default)
        if not isinstance(value, bool):
            raise self.fail(key, "must be true or false")
        return value

    def texts(self, key: str, default: Any = REQUIRED) -> tuple[str, ...]:
        """A list of distinct non-empty strings."""
        value = self.raw(key, default)
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) and item for item in value):
            raise self.fail(key, "must be a list of non-empty strings")
        if len(set(value)) != len(value):
            raise self.fail(key, "holds a text twice")
        return tuple(value)

    def section(self, key: str, default: Any = REQUIRED) -> Reader:
        """A nested object."""
        return Reader(self._file, self.raw(key, default), self.where(key).removeprefix(f"{self._file}: "))

    def sections(self, key: str) -> list[Reader]:
        """A list of objects."""
        value = self.raw(key)
        if not isinstance(value, list):
            raise self.fail(key, "must be a list")
        base = self.where(key).removeprefix(f"{self._file}: ")
        return [Reader(self._file, item, f"{base}[{index}]") for index, item in enumerate(value)]

    def numbers(self, key: str, default: Any = REQUIRED) -> Mapping[str, float]:
        """An object of finite numbers."""
        section = self.section(key, default)
        return {name: section.number(name) for name in section}

    def done(self) -> None:
        """Refuse keys that nobody read."""
        for key in self._data:
            if key not in self._taken:
                near = difflib.get_close_matches(key, self._taken, n=1)
                hint = f'; did you mean "{near[0]}"?' if near else ""
                raise self.fail(key, f"unknown key{hint}")


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else "absent")
