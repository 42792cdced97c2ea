"""One question of a System One body: a JSON object to a typed question, strictly."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson

from router.questions import Option, Question, QuestionType, SpanHead

from .asking import Asked
from .state import as_text

MOST_CANDIDATES = 1024
"""Texts that one similarity question compares with."""

_KEPT, _LONGEST_KEPT = 512, 2048
_FIELDS = frozenset(
    {
        "type",
        "instructions",
        "criteria",
        "choices",
        "levels",
        "labels",
        "over",
        "require_full_input",
        "overflow",
        "head",
        "threshold",
        "preset",
        "candidates",
    }
)
_LISTS = {
    "noul": "choices",
    "choice": "choices",
    "score": "levels",
    "set": "labels",
    "span": "labels",
    "similarity": "candidates",
}
_COUNTS = {
    "noul": (0, 2),
    "choice": (2, 255),
    "score": (2, 10),
    "set": (1, 255),
    "span": (1, 255),
    "similarity": (1, MOST_CANDIDATES),
}
_COMPARING = frozenset({"type", "candidates", "over", "require_full_input", "overflow"})


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One thing wrong with a question, by the path inside it."""

    loc: tuple[str | int, ...]
    msg: str
    type: str = "value_error"


@dataclass(slots=True)
class _Reading:
    """A question being read: its object and what is wrong with it so far."""

    data: dict[str, Any]
    problems: list[FieldProblem] = field(default_factory=list)

    def bad(self, loc: str | tuple[str | int, ...], msg: str, kind: str = "value_error") -> None:
        self.problems.append(FieldProblem((loc,) if isinstance(loc, str) else loc, msg, kind))


Read = tuple[Asked, tuple[Any, ...]] | list[FieldProblem]
"""The question and, for a score, its levels as sent; or everything that is wrong with it."""


def read_question(data: Any) -> Read:
    """One question. Those of a configuration come with every request, so what was made of one is kept for the next."""
    try:
        written = orjson.dumps(data)
    except orjson.JSONEncodeError:
        return _read(data)  # a number of more than 64 bits, say
    return _known(written) if len(written) <= _LONGEST_KEPT else _read(data)


@lru_cache(_KEPT)
def _known(written: bytes) -> Read:
    return _read(orjson.loads(written))


def _read(data: Any) -> Read:
    if not isinstance(data, dict):
        return [FieldProblem((), "must be an object", "object_type")]
    reading = _Reading(data)
    kind = data.get("type")
    if not isinstance(kind, str) or kind not in _LISTS:
        known = ", ".join(_LISTS)
        reading.bad("type", f"must be one of {known}", "missing" if "type" not in data else "literal_error")
        return reading.problems
    for key in data:
        if key not in _FIELDS:
            reading.bad(key[:64], "Extra inputs are not permitted", "extra_forbidden")
    if kind == "similarity":
        return _similarity(reading)
    options, legend = _options(reading, kind)
    preset = _preset(reading, options)
    instructions = _instructions(reading, kind, options, preset)
    threshold = _threshold(reading, kind)
    head = _head(reading, kind)
    over = _over(reading, kind)
    full, truncate = _overflow(reading)
    if reading.problems:
        return reading.problems
    question = Question(QuestionType(kind), instructions, options, preset, threshold, head)
    return Asked(question, over, full, truncate), legend


def _similarity(reading: _Reading) -> tuple[Asked, tuple[Any, ...]] | list[FieldProblem]:
    """A similarity question: nothing but the texts to compare with."""
    for key in reading.data.keys() & _FIELDS - _COMPARING:
        reading.bad(key, "is not a field of a similarity question", "extra_forbidden")
    texts, (least, most) = reading.data.get("candidates"), _COUNTS["similarity"]
    if "candidates" not in reading.data:
        reading.bad("candidates", "Field required", "missing")
    elif not isinstance(texts, list) or not least <= len(texts) <= most:
        reading.bad("candidates", f"must be a list of {least} to {most} texts", "length")
    elif not all(isinstance(text, str) and text.strip() for text in texts):
        reading.bad("candidates", "must be texts that are not blank", "string_type")
    over = _over(reading, "similarity")
    full, truncate = _overflow(reading)
    if reading.problems or not isinstance(texts, list):
        return reading.problems
    options = tuple(Option(str(index), text) for index, text in enumerate(texts))
    return Asked(Question(QuestionType.SIMILARITY, None, options), over, full, truncate), ()


def _options(reading: _Reading, kind: str) -> tuple[tuple[Option, ...], tuple[Any, ...]]:
    data, name = reading.data, _LISTS[kind]
    for other in {"choices", "levels", "labels", "candidates"} - {name}:
        if other in data:
            reading.bad(other, f"is not a field of a {kind} question", "extra_forbidden")
    listed, criteria = data.get(name), data.get("criteria")
    if listed is not None and criteria is not None:
        reading.bad(name, f"give criteria or {name}, not both")
        return (), ()
    if listed is None and criteria is None:
        least = 0 if "preset" in data else _COUNTS[kind][0]
        if least:
            reading.bad("criteria", "Field required", "missing")
        return (), ()
    source = "criteria" if listed is None else name
    if kind == "score":
        return _levels(reading, source, data[source])
    if listed is not None:
        return _keyed(reading, source, listed, kind), ()
    if not isinstance(criteria, dict):
        reading.bad(source, "must be an object of descriptions by key", "object_type")
        return (), ()
    pairs = list(criteria.items())
    return _pairs(reading, source, pairs, kind), ()


def _keyed(reading: _Reading, source: str, value: Any, kind: str) -> tuple[Option, ...]:
    pairs: list[tuple[str, Any]] = []
    if not isinstance(value, list):
        reading.bad(source, "must be a list of objects with key and description", "list_type")
        return ()
    for index, item in enumerate(value):
        if not isinstance(item, dict) or not isinstance(item.get("key"), str) or item.keys() - {"key", "description"}:
            reading.bad((source, index), "must be an object with key and, if you like, description", "object_type")
        else:
            pairs.append((item["key"], item.get("description")))
    if len({key for key, _ in pairs}) != len(pairs):
        reading.bad(source, "holds a key twice")
    return _pairs(reading, source, pairs, kind)


def _pairs(reading: _Reading, source: str, pairs: list[tuple[str, Any]], kind: str) -> tuple[Option, ...]:
    least, most = _COUNTS[kind]
    if not least <= len(pairs) <= most:
        reading.bad(source, f"a {kind} question takes {least} to {most}", "length")
    options = []
    for index, (key, description) in enumerate(pairs):
        if not key.strip():
            reading.bad((source, index), "a key must not be blank")
        if kind == "noul" and key not in ("true", "false"):
            reading.bad((source, index), "a noul describes true and false only", "literal_error")
        if description is not None and not isinstance(description, str | dict | list):
            reading.bad((source, index), "must be text, an object, an array or null", "description_type")
            continue
        text = None if description is None else as_text(description)
        options.append(Option(key, text if text and text.strip() else None))
    return tuple(options)


def _levels(reading: _Reading, source: str, value: Any) -> tuple[tuple[Option, ...], tuple[Any, ...]]:
    if not isinstance(value, list):
        reading.bad(source, "must be a list of levels from low to high", "list_type")
        return (), ()
    least, most = _COUNTS["score"]
    if not least <= len(value) <= most:
        reading.bad(source, f"a score question takes {least} to {most}", "length")
    for index, level in enumerate(value):
        if not isinstance(level, str | dict | list) or (isinstance(level, str) and not level.strip()):
            reading.bad((source, index), "a level must be text, an object or an array", "level_type")
    if reading.problems:
        return (), ()
    return tuple(Option(str(index), as_text(level)) for index, level in enumerate(value)), tuple(value)


def _preset(reading: _Reading, options: tuple[Option, ...]) -> str | None:
    preset = reading.data.get("preset")
    if preset is None:
        return None
    if not isinstance(preset, str) or not preset.strip():
        reading.bad("preset", "must be the name of a preset", "string_type")
        return None
    if options:
        reading.bad("preset", "a preset brings its own options")
    return preset


def _instructions(reading: _Reading, kind: str, options: tuple[Option, ...], preset: str | None) -> str | None:
    value = reading.data.get("instructions")
    if value is None:
        described = kind == "noul" and any(option.description for option in options)
        if preset is None and not described:
            reading.bad("instructions", "Field required", "missing")
        return None
    if not isinstance(value, str | dict | list):
        reading.bad("instructions", "must be text, an object or an array", "string_type")
        return None
    text = as_text(value)
    if not text.strip():
        reading.bad("instructions", "must not be blank")
    return text


def _threshold(reading: _Reading, kind: str) -> float | None:
    value = reading.data.get("threshold")
    if value is None:
        return None
    if kind not in ("set", "span"):
        reading.bad("threshold", "is for set and span questions only", "extra_forbidden")
    elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        reading.bad("threshold", "must be a number from 0 to 1", "number_type")
    else:
        return float(value)
    return None


def _head(reading: _Reading, kind: str) -> SpanHead | None:
    value = reading.data.get("head")
    if value is None:
        return None
    if kind != "span":
        reading.bad("head", "is for span questions only", "extra_forbidden")
    elif value not in ("router", "broad"):
        reading.bad("head", "must be router or broad", "literal_error")
    else:
        return SpanHead(value)
    return None


def _over(reading: _Reading, kind: str) -> tuple[str, ...]:
    value = reading.data.get("over")
    if value is None:
        return ()
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name for name in names):
        reading.bad("over", "must be the name of a field, or a list of names", "string_type")
        return ()
    if kind == "span" and len(names) > 1:
        reading.bad("over", "a span reads one field")
    return tuple(names)


def _overflow(reading: _Reading) -> tuple[bool, bool]:
    full, overflow = reading.data.get("require_full_input", False), reading.data.get("overflow", "window")
    if not isinstance(full, bool):
        reading.bad("require_full_input", "must be true or false", "bool_type")
        full = False
    if overflow not in ("window", "truncate"):
        reading.bad("overflow", "must be window or truncate", "literal_error")
    if full and overflow == "truncate":
        reading.bad("overflow", "require_full_input cannot be combined with truncate")
    return full, overflow == "truncate"
