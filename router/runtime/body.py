"""System One request bodies: parsed JSON to typed questions.

Everything wrong with a body is collected as problems in the form that System One clients know (`loc`, `msg`, `type`).
What depends on the model (does it answer this type, is the text too long) is not judged here: that fails one question.
Fields of the body itself that nobody knows are passed over and named in `ignored`, as the hosted API passes over them;
inside questions, states and options a field that nobody knows is a problem. Messages never repeat text of a state, an
instruction or an option.

Sources: System One request and question types; reference section "Model runtime".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .asking import Asked, State
from .question_body import read_question

_TOP = frozenset({"model", "state", "questions", "states", "options"})
_MEDIA = {"images": "image", "assets": "image", "videos": "video", "audio": "audio"}
_BLOCK = frozenset({"state", "questions"})
_OPTIONS = frozenset({"deadline_ms", "return_meta"})
SHOWN = 64
"""Characters of a client's own key that a message repeats."""
MOST_OPTIONS = 16_384
"""Options of all questions of a request: each may cost a pass of its own, and a small body can list very many."""


Loc = tuple[str | int, ...]
"""A path into a body."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a body: where, what, and a stable kind."""

    loc: Loc
    msg: str
    type: str = "value_error"


class BadBody(Exception):
    """The body is not a valid request. `malformed` says that it is not even JSON."""

    def __init__(self, problems: list[Problem], *, malformed: bool = False) -> None:
        super().__init__(f"{len(problems)} problems")
        self.problems = problems
        self.malformed = malformed


class Unsupported(Exception):
    """A valid request that needs what no text model has; `needs` are capability words: image, video, audio."""

    def __init__(self, needs: Iterable[str]) -> None:
        self.needs = tuple(sorted(set(needs)))
        super().__init__(", ".join(self.needs))


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
    """A whole request. `main` is absent when only named `states` are asked about. `deadline_ms` counts from arrival.

    `ignored` names the body's own fields that had no effect.
    """

    model: str | None
    main: Block | None
    states: dict[str, Block]
    deadline_ms: float | None = None
    return_meta: bool = False
    ignored: tuple[str, ...] = ()

    @property
    def blocks(self) -> list[Block]:
        """Every state with its questions, the main one first."""
        return [*([self.main] if self.main else []), *self.states.values()]


def read_body(data: Any, max_questions: int = 1024) -> Body:
    """A request from parsed JSON. Raises BadBody with every problem found, or Unsupported for images and the like."""
    problems: list[Problem] = []
    fields = read_object(data)
    model = read_model(fields, problems)
    states = _states(fields, problems)
    main = None
    if "state" in fields or "questions" in fields or not states:
        main = _block(fields, ("body",), problems)
    deadline, meta = read_options(fields, problems)
    body = Body(model, main, states, deadline, meta, ignored_fields(fields, _TOP))
    check_size(body, max_questions, problems)
    if problems:
        raise BadBody(problems)
    refuse_media(fields)
    return body


def read_object(data: Any) -> dict[str, Any]:
    """The body as an object. Raises BadBody."""
    if not isinstance(data, dict):
        raise BadBody([Problem(("body",), "must be an object", "object_type")])
    return data


def read_model(data: dict[str, Any], problems: list[Problem]) -> str | None:
    """The name of the model that is asked for; None when it is left to us."""
    model = data.get("model")
    if model is None or (isinstance(model, str) and model):
        return model
    problems.append(Problem(("body", "model"), "must be a non-empty string", "string_type"))
    return None


def ignored_fields(data: dict[str, Any], known: frozenset[str]) -> tuple[str, ...]:
    """The body's own fields that nobody knows."""
    return tuple(key[:SHOWN] for key in data if key not in known and key not in _MEDIA)


def refuse_media(data: dict[str, Any]) -> None:
    """Raises Unsupported when the body brings what a text model cannot read."""
    if needs := [capability for key, capability in _MEDIA.items() if data.get(key) is not None]:
        raise Unsupported(needs)


def check_size(body: Body, max_questions: int, problems: list[Problem]) -> None:
    """How many questions and options there are over all states."""
    posed = [one for block in body.blocks for one in block.questions.values()]
    if sum(len(one.asked.question.options) for one in posed) > MOST_OPTIONS:
        problems.append(Problem(("body", "questions"), f"at most {MOST_OPTIONS} options in all", "too_long"))
    if len(posed) > max_questions:
        problems.append(Problem(("body", "questions"), f"at most {max_questions} questions in all", "too_long"))


def read_questions(data: Any) -> dict[str, Posed]:
    """Questions by id. Raises BadBody."""
    problems: list[Problem] = []
    questions = named_questions(data, ("questions",), problems)
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
        loc = ("body", "states", name[:SHOWN])
        if not name.strip() or not isinstance(value, dict):
            problems.append(Problem(loc, "must be a named object with state and questions", "object_type"))
            continue
        unknown_fields(value, _BLOCK, loc, problems)
        states[name] = _block(value, loc, problems)
    return states


def _block(data: dict[str, Any], loc: Loc, problems: list[Problem]) -> Block:
    state = read_state(data, loc, problems)
    if "questions" not in data:
        problems.append(Problem((*loc, "questions"), "Field required", "missing"))
        return Block("", {})
    return Block(state, named_questions(data["questions"], (*loc, "questions"), problems))


def read_state(data: dict[str, Any], loc: Loc, problems: list[Problem]) -> State:
    """The `state` of an object."""
    state = data.get("state")
    if isinstance(state, str | dict | list):
        return state
    missing = "state" not in data
    message = "Field required" if missing else "must be a string, an object or an array"
    problems.append(Problem((*loc, "state"), message, "missing" if missing else "state_type"))
    return ""


def named_questions(data: Any, loc: Loc, problems: list[Problem]) -> dict[str, Posed]:
    """Questions by id, as far as they are valid."""
    if not isinstance(data, dict) or not data:
        problems.append(Problem(loc, "must be a non-empty object of questions by id", "object_type"))
        return {}
    questions: dict[str, Posed] = {}
    taken: set[str] = set(data)
    for name, value in data.items():
        place = (*loc, name[:SHOWN])
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


def read_options(body: dict[str, Any], problems: list[Problem]) -> tuple[float | None, bool]:
    """`deadline_ms` and `return_meta` of the body's `options`."""
    data = body.get("options")
    if data is None:
        return None, False
    if not isinstance(data, dict):
        problems.append(Problem(("body", "options"), "must be an object", "object_type"))
        return None, False
    unknown_fields(data, _OPTIONS, ("body", "options"), problems)
    deadline, meta = data.get("deadline_ms"), data.get("return_meta", False)
    if deadline is not None and (isinstance(deadline, bool) or not isinstance(deadline, int | float) or deadline <= 0):
        problems.append(Problem(("body", "options", "deadline_ms"), "must be a number above 0", "number_type"))
        deadline = None
    if not isinstance(meta, bool):
        problems.append(Problem(("body", "options", "return_meta"), "must be true or false", "bool_type"))
        meta = False
    return deadline, meta


def unknown_fields(data: dict[str, Any], known: frozenset[str], loc: Loc, problems: list[Problem]) -> None:
    """Fields that are none of `known` are problems here."""
    for key in data:
        if key not in known:
            problems.append(Problem((*loc, key[:SHOWN]), "Extra inputs are not permitted", "extra_forbidden"))
