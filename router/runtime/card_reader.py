"""Reads `decision.json`, format `decision-onnx/1`, strictly into a `Card`.

Reading a card needs neither ONNX Runtime nor the graphs, so a configuration can be checked against it cheaply. Every
key is read once by name and type, with its default where it may be left out; an unknown key is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from router.questions import DECIDING, QuestionType

from .card import Affine, Card, CustomQuestions, Graph, Limits, Reading, Tensor, Tokens
from .card_presets import WEAK, read_preset
from .card_settings import read_settings
from .reading import Reader

FORMAT = "decision-onnx/1"
CARD_FILE = "decision.json"
ADAPTERS = ("two_tower", "classifier", "marker_row", "gliclass", "gliner", "encoder")
NUMERICS = ("batch_independent", "batch_dependent", "unmeasured")
QUALITIES = ("weak", "fair", "good")
_SIZES = ("2", "3-5", "6-10", "11+")
_POOLS: Mapping[str, str] = {
    "noul": "max",
    "set": "max",
    "choice": "mean_logits",
    "score": "mean_logits",
    "span": "union",
}


def parse_card(data: object, file: str = CARD_FILE, *, golden: bool = True) -> Card:
    """Read a card from parsed JSON. Raises ArtifactError with file and key for anything missing, unknown or wrong.

    `golden` False lets a card without golden cases pass: one that was derived from a public contract's own files.
    """
    top = Reader(file, data)
    top.one_of("format", (FORMAT,))
    adapter = top.one_of("adapter", ADAPTERS)
    types = _types(top, "question_types")
    calibration = top.section("calibration")
    temperature = _temperatures(calibration)
    by_options = _by_options(calibration)
    thresholds = calibration.numbers("thresholds", {})
    calibration.flag("fitted", False)
    calibration.done()
    graphs = {name: _graph(name, top.section("graphs").section(name)) for name in top.section("graphs")}
    presets = {
        name: read_preset(name, top.section("presets").section(name), temperature, thresholds)
        for name in top.section("presets", {})
    }
    card = Card(
        name=top.text("name"),
        version=top.text("version"),
        released=_date(top, "released"),
        licence=top.text("licence"),
        quality=top.one_of("quality", ("experimental", "evaluated"), "experimental"),
        adapter=adapter,
        question_types=types,
        modalities=top.texts("modalities", ["text"]),
        limits=_limits(top.section("limits")),
        reading=_reading(top.section("reading", {})),
        tokens=_tokens(top.section("tokens")),
        graphs=graphs,
        presets=presets,
        custom=_custom(top.section("custom_questions")) if "custom_questions" in top else None,
        temperature=temperature,
        temperature_by_options=by_options,
        thresholds=thresholds,
        option_template=top.text("option_template", "{key}: {description}"),
        precision=top.text("precision", "fp32"),
        numerics=top.one_of("numerics", NUMERICS, "unmeasured"),
        golden=_golden(top, needed=golden),
        settings=read_settings(top, adapter),
    )
    for free in ("eval", "notes"):
        top.raw(free, None)
    top.done()
    _check(top, card)
    return card


def _types(section: Reader, key: str) -> frozenset[QuestionType]:
    known = {kind.value for kind in DECIDING}
    names = section.texts(key)
    for name in names:
        if name not in known:
            raise section.fail(key, f"holds {name!r}; question types are {', '.join(sorted(known))}")
    return frozenset(QuestionType(name) for name in names)


def _temperatures(calibration: Reader) -> dict[QuestionType, float]:
    section = calibration.section("temperature", {})
    known = {kind.value for kind in DECIDING}
    for name in section:
        if name not in known:
            raise section.fail(name, "is not a question type")
        if section.number(name) <= 0:
            raise section.fail(name, "must be above 0")
    return {QuestionType(name): section.number(name) for name in section}


def _by_options(calibration: Reader) -> dict[str, float]:
    """Temperatures by `<type>:<number of options>`, where the numbers come in four groups."""
    section = calibration.section("temperature_by_options", {})
    known = {f"{kind.value}:{size}" for kind in DECIDING for size in _SIZES}
    for name in section:
        if name not in known:
            raise section.fail(name, f"must be <type>:<{' | '.join(_SIZES)}>")
        if section.number(name) <= 0:
            raise section.fail(name, "must be above 0")
    return {name: section.number(name) for name in section}


def _date(section: Reader, key: str) -> str:
    value = section.text(key, "1970-01-01")
    if re.fullmatch(r"\d{4}-\d\d-\d\d", value) is None:
        raise section.fail(key, "must be a date, YYYY-MM-DD")
    return value


def _limits(section: Reader) -> Limits:
    graph = section.integer("graph_tokens", least=4)
    most = section.integer("max_input_tokens", graph, least=1)
    validated = section.integer("validated_input_tokens", least=1) if "validated_input_tokens" in section else None
    if validated is not None and validated > most:
        raise section.fail("validated_input_tokens", "is larger than max_input_tokens")
    limits = Limits(
        graph_tokens=graph,
        max_input_tokens=most,
        validated_input_tokens=validated,
        max_options=section.integer("max_options", 255, least=2),
        max_labels=section.integer("max_labels", 255, least=1),
        max_questions=section.integer("max_questions", 1024, least=1),
    )
    section.done()
    return limits


def _reading(section: Reader) -> Reading:
    long = section.one_of("long", ("window", "truncate", "reject"), "truncate")
    window = section.section("window", {"tokens": 126, "overlap": 24})
    tokens, overlap = window.integer("tokens", least=2), window.integer("overlap", 0)
    if overlap >= tokens:
        raise window.fail("overlap", "must be smaller than tokens")
    window.done()
    pools = section.section("pool", {})
    for name in _POOLS:
        pools.one_of(name, (_POOLS[name],), _POOLS[name])
    pools.done()
    once = section.flag("state_once", False)
    section.done()
    return Reading(once, long, tokens, overlap, {QuestionType(k): v for k, v in _POOLS.items()})


def _tokens(section: Reader) -> Tokens:
    frame = [section.integer(key) if key in section else None for key in ("cls", "sep")]
    section.integer("mask", 0)
    tokens = Tokens(section.integer("pad"), frame[0], frame[1], section.texts("forbidden_in_text"))
    section.done()
    return tokens


def _graph(name: str, section: Reader) -> Graph:
    graph = Graph(name, section.text("file"), _tensors(section, "inputs"), _tensors(section, "outputs"))
    section.raw("slices", None)
    section.done()
    return graph


def _tensors(section: Reader, key: str) -> tuple[Tensor, ...]:
    tensors = []
    for item in section.sections(key):
        shape = item.raw("shape")
        if not isinstance(shape, list) or not all(isinstance(side, int | str) for side in shape):
            raise item.fail("shape", "must be a list of numbers and names")
        optional = item.flag("optional", False)
        tensors.append(Tensor(item.text("name"), item.text("type"), tuple(shape), optional))
        item.done()
    return tuple(tensors)


def _custom(section: Reader) -> CustomQuestions:
    def soft(key: str) -> float | None:
        if key not in section:
            return None
        inner = section.section(key)
        value = inner.number("temperature")
        if value <= 0:
            raise inner.fail("temperature", "must be above 0")
        inner.done()
        return value

    def affine(key: str) -> Affine | None:
        if key not in section:
            return None
        inner = section.section(key)
        values = Affine(
            inner.number("a"), inner.number("b"), inner.number("threshold", 0.5), inner.number("contrast", 0.3)
        )
        if key == "span":
            inner.text("states")
        inner.done()
        return values

    custom = CustomQuestions(
        embedding=section.text("embedding"),
        choice=soft("choice"),
        score=soft("score"),
        noul=affine("noul"),
        set=affine("set"),
        span=affine("span"),
        span_states=section.section("span").text("states") if "span" in section else None,
        weak=_weak(section),
    )
    section.done()
    return custom


def _weak(section: Reader) -> frozenset[QuestionType]:
    """The types of free questions that the card calls weak."""
    inner = section.section("quality", {})
    known = {kind.value for kind in DECIDING}
    for name in inner:
        if name not in known:
            raise inner.fail(name, "is not a question type")
    weak = frozenset(QuestionType(name) for name in inner if inner.one_of(name, QUALITIES) == WEAK[0])
    inner.done()
    return weak


_CASE_KEYS = ("state", "tolerance", "heads", "spans", "answers", "questions")


def _golden(top: Reader, *, needed: bool) -> tuple[Mapping[str, Any], ...]:
    cases = []
    for case in top.sections("golden") if needed or "golden" in top else []:
        if not case.raw("state") or not isinstance(case.raw("state"), str | dict):
            raise case.fail("state", "must be a text or an object of texts, not empty")
        case.number("tolerance", 0.02)
        if not any(key in case for key in ("heads", "spans", "answers")):
            raise case.fail(None, "checks nothing: give heads, spans or answers")
        if ("answers" in case) != ("questions" in case):
            raise case.fail(None, "needs questions and answers together")
        cases.append({key: case.raw(key) for key in _CASE_KEYS if key in case})
        case.done()
    if not cases and needed:
        raise top.fail("golden", "holds no case")
    return tuple(cases)


def _check(top: Reader, card: Card) -> None:
    """What no single key can show: that the parts of the card fit together."""
    outputs = {tensor.name for graph in card.graphs.values() for tensor in graph.outputs}
    if "encoder" not in card.graphs:
        raise top.fail("graphs.encoder", "missing")
    for preset in card.presets.values():
        if preset.head not in outputs:
            raise top.fail(f"presets.{preset.name}.head", f"no graph has an output {preset.head!r}")
        if preset.rules is not None and card.adapter not in ("two_tower", "classifier"):
            raise top.fail(f"presets.{preset.name}.rules", f"has no effect with adapter {card.adapter}")
    _check_types(top, card)
    if card.reading.long == "window" and card.reading.window_tokens + 2 > card.limits.graph_tokens:
        raise top.fail("reading.window.tokens", "does not fit limits.graph_tokens")


_ANSWERED: Mapping[str, frozenset[QuestionType]] = {
    "classifier": frozenset(),
    "marker_row": frozenset({QuestionType.CHOICE, QuestionType.SCORE, QuestionType.NOUL}),
    "gliclass": frozenset({QuestionType.SET, QuestionType.CHOICE, QuestionType.NOUL}),
    "gliner": frozenset({QuestionType.SPAN}),
    "encoder": frozenset(),
}


def _check_types(top: Reader, card: Card) -> None:
    """The free question types are those that the adapter, or its rules for free questions, can answer."""
    outputs = {tensor.name for graph in card.graphs.values() for tensor in graph.outputs}
    custom = card.custom
    if card.adapter != "two_tower":
        if custom is not None:
            raise top.fail("custom_questions", f"has no effect with adapter {card.adapter}")
        if missing := sorted(card.question_types - _ANSWERED[card.adapter]):
            raise top.fail("question_types", f"{', '.join(missing)}: adapter {card.adapter} does not answer them")
        return
    answered = {kind for kind in DECIDING if custom is not None and getattr(custom, kind.value) is not None}
    if missing := sorted(card.question_types - answered):
        raise top.fail(
            "question_types", f"{', '.join(missing)} listed, but custom_questions does not say how to answer"
        )
    for name in (custom.embedding, custom.span_states) if custom else ():
        if name is not None and name not in outputs:
            raise top.fail("custom_questions", f"no graph has an output {name!r}")
