"""System One request bodies: bytes to typed questions, strictly.

Everything wrong with a body is collected as problems in the form that System One clients know (`loc`, `msg`, `type`).
What depends on the model (does it answer this type, is the text too long) is not judged here: that fails one question.
Messages never repeat text of a state, an instruction or an option.

Sources: System One request and question types; reference section "Model runtime".
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import orjson

from .asking import Asked, State
from .question_body import read_question

_TOP = frozenset({"model", "state", "questions", "states", "options"})
_MEDIA = frozenset({"images", "assets", "videos", "audio"})
_BLOCK = frozenset({"state", "questions"})
_OPTIONS = frozenset({"deadline_ms", "return_meta"})
_SHOWN = 64
_MOST_DEPTH = 128
_MOST_OPTIONS = 16_384
"""Options of all questions of a request: each may cost a pass of its own, and a small body can list very many."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a body: where, what, and a stable kind."""

    loc: tuple[str | int, ...]
    msg: str
    type: str = "value_error"


class BadBody(Exception):
    """The body is not a valid request. `malformed` says that it is not even JSON."""

    def __init__(self, problems: list[Problem], *, malformed: bool = False) -> None:
        super().__init__(f"{len(problems)} problems")
        self.problems = problems
        self.malformed = malformed


@dataclass(frozen=True, slots=True)
class Posed:
    """A question as it was posed; `legend` are a score's levels as they were sent, to be sent back."""

    asked: Asked
    legend: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """A state with the questions about it."""

    state: State
    questions: dict[str, Posed]


@dataclass(frozen=True, slots=True)
class Body:
    """A whole request. `main` is absent when only named `states` are asked about. `deadline_ms` counts from arrival."""

    model: str | None
    main: Block | None
    states: dict[str, Block]
    deadline_ms: float | None
    return_meta: bool

    @property
    def blocks(self) -> list[Block]:
        """Every state with its questions, the main one first."""
        return [*([self.main] if self.main else []), *self.states.values()]


def parse_json(data: bytes) -> Any:
    """JSON without duplicate keys, NaN, infinities, lone surrogates or deep nesting. Raises BadBody (malformed)."""
    try:
        orjson.loads(data)
        value = json.loads(data, object_pairs_hook=_distinct)
        if data.count(b"[") + data.count(b"{") <= _MOST_DEPTH or _depth_is_bounded(value):
            return value
        message = f"the body is nested deeper than {_MOST_DEPTH}"
    except _Duplicate:
        message = "an object holds a key twice"
    except (ValueError, RecursionError):
        message = "the body is not valid JSON"
    raise BadBody([Problem(("body",), message, "json_invalid")], malformed=True)


def read_body(data: Any, max_questions: int = 1024) -> Body:
    """A request from parsed JSON. Raises BadBody with every problem found."""
    problems: list[Problem] = []
    if not isinstance(data, dict):
        raise BadBody([Problem(("body",), "must be an object", "object_type")])
    if "input" in data and isinstance(data.get("questions"), list):
        raise BadBody([Problem(("body", "input"), "the OpenAI decisions form is not supported yet", "unsupported")])
    for key in data.keys() & _MEDIA:
        problems.append(Problem(("body", key), "this model reads text only", "unsupported"))
    _unknown(data, _TOP | _MEDIA, ("body",), problems)
    model = data.get("model")
    if model is not None and (not isinstance(model, str) or not model):
        problems.append(Problem(("body", "model"), "must be a non-empty string", "string_type"))
        model = None
    states = _states(data, problems)
    main = None
    if "state" in data or "questions" in data or not states:
        main = _block(data, ("body",), problems)
    deadline, meta = _options(data.get("options"), problems)
    posed = [one for block in [*([main] if main else []), *states.values()] for one in block.questions.values()]
    if sum(len(one.asked.question.options) for one in posed) > _MOST_OPTIONS:
        problems.append(Problem(("body", "questions"), f"at most {_MOST_OPTIONS} options in all", "too_long"))
    if len(posed) > max_questions:
        problems.append(Problem(("body", "questions"), f"at most {max_questions} questions in all", "too_long"))
    if problems:
        raise BadBody(problems)
    return Body(model, main, states, deadline, meta)


def read_questions(data: Any) -> dict[str, Posed]:
    """Questions by id. Raises BadBody."""
    problems: list[Problem] = []
    questions = _questions(data, ("questions",), problems)
    if problems:
        raise BadBody(problems)
    return questions


def _states(data: dict[str, Any], problems: list[Problem]) -> dict[str, Block]:
    raw = data.get("states")
    if raw is None:
        return {}
    if not isinstance(raw, dict) or not raw:
        problems.append(Problem(("body", "states"), "must be a non-empty object", "object_type"))
        return {}
    states: dict[str, Block] = {}
    for name, value in raw.items():
        loc = ("body", "states", name[:_SHOWN])
        if not name.strip() or not isinstance(value, dict):
            problems.append(Problem(loc, "must be a named object with state and questions", "object_type"))
            continue
        _unknown(value, _BLOCK, loc, problems)
        states[name] = _block(value, loc, problems)
    return states


def _block(data: dict[str, Any], loc: tuple[str | int, ...], problems: list[Problem]) -> Block:
    state = data.get("state")
    if "state" not in data:
        problems.append(Problem((*loc, "state"), "Field required", "missing"))
    elif not isinstance(state, str | dict | list):
        problems.append(Problem((*loc, "state"), "must be a string, an object or an array", "state_type"))
    if "questions" not in data:
        problems.append(Problem((*loc, "questions"), "Field required", "missing"))
        return Block("", {})
    questions = _questions(data["questions"], (*loc, "questions"), problems)
    return Block(state if isinstance(state, str | dict | list) else "", questions)


def _questions(data: Any, loc: tuple[str | int, ...], problems: list[Problem]) -> dict[str, Posed]:
    if not isinstance(data, dict) or not data:
        problems.append(Problem(loc, "must be a non-empty object of questions by id", "object_type"))
        return {}
    questions: dict[str, Posed] = {}
    taken: set[str] = set(data)
    for name, value in data.items():
        place = (*loc, name[:_SHOWN])
        if not name.strip():
            problems.append(Problem(place, "a question id must not be blank", "value_error"))
            continue
        read = read_question(value)
        if isinstance(read, list):
            problems += [Problem((*place, *field.loc), field.msg, field.type) for field in read]
            continue
        asked, legend = read
        questions[name] = Posed(asked, legend)
        for derived in derived_ids(name, asked):
            if derived in taken:
                problems.append(Problem(place, "an id made from a set's id and label is in use already", "value_error"))
            taken.add(derived)
    return questions


def derived_ids(name: str, asked: Asked) -> list[str]:
    """Ids of the yes/no answers that a set gives beside itself: `<id>.<label>`."""
    question = asked.question
    return [f"{name}.{option.key}" for option in question.options] if question.type.value == "set" else []


def _options(data: Any, problems: list[Problem]) -> tuple[float | None, bool]:
    if data is None:
        return None, False
    if not isinstance(data, dict):
        problems.append(Problem(("body", "options"), "must be an object", "object_type"))
        return None, False
    _unknown(data, _OPTIONS, ("body", "options"), problems)
    deadline, meta = data.get("deadline_ms"), data.get("return_meta", False)
    if deadline is not None and (isinstance(deadline, bool) or not isinstance(deadline, int | float) or deadline <= 0):
        problems.append(Problem(("body", "options", "deadline_ms"), "must be a number above 0", "number_type"))
        deadline = None
    if not isinstance(meta, bool):
        problems.append(Problem(("body", "options", "return_meta"), "must be true or false", "bool_type"))
        meta = False
    return deadline, meta


def _unknown(data: dict[str, Any], known: frozenset[str], loc: tuple[str | int, ...], problems: list[Problem]) -> None:
    for key in data:
        if key not in known:
            problems.append(Problem((*loc, key[:_SHOWN]), "Extra inputs are not permitted", "extra_forbidden"))


def _depth_is_bounded(value: Any) -> bool:
    """Without recursion: what is deeper could not be written out again as text."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(_MOST_DEPTH + 1):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return True
    return False


class _Duplicate(ValueError):
    pass


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise _Duplicate
    return result
