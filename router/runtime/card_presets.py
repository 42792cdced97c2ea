"""The presets of a card: which outputs answer a named question, and what its labels are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from router.questions import QuestionType

from .card import Level, Preset
from .personal.finding import LABELS, RULES
from .reading import Reader

_OUTSIDE = "O"
_SIDES = frozenset({"true", "false"})

WEAK = ("weak", "must not gate")
"""What `quality` says of answers that nothing should rest on alone."""


@dataclass(frozen=True, slots=True)
class _Classes:
    """A span head's classes: the labels they are of, in the form that `Preset` keeps."""

    raw: tuple[str, ...]
    classes: tuple[int, ...]
    begins: tuple[bool, ...]


def read_preset(
    name: str, section: Reader, temperature: Mapping[QuestionType, float], thresholds: Mapping[str, float]
) -> Preset:
    """One preset. Raises ArtifactError."""
    kind = QuestionType(section.one_of("type", ("noul", "choice", "score", "set", "span")))
    span = _classes(section) if kind is QuestionType.SPAN else None
    raw = span.raw if span is not None else section.texts("options")
    mapped = _mapped(section, raw, "drop" if kind is QuestionType.SPAN else "other")
    slice_ = None if kind is QuestionType.SPAN else _slice(section, raw)
    if kind is QuestionType.NOUL:
        _check_sides(section, raw, mapped)
    elif kind in (QuestionType.CHOICE, QuestionType.SCORE) and None in mapped:
        raise section.fail("unmapped", "only a set or span can drop labels: the probabilities of a choice sum to 1")
    scale = section.number("temperature", temperature.get(kind, 1.0))
    if scale <= 0:
        raise section.fail("temperature", "must be above 0")
    rules = _rules(section, kind)
    labels = () if kind is QuestionType.NOUL else tuple(dict.fromkeys(m for m in mapped if m is not None))
    if rules is not None and kind is QuestionType.SPAN:
        labels = tuple(dict.fromkeys((*labels, *LABELS)))
    preset = Preset(
        name=name,
        type=kind,
        head=section.text("head"),
        slice=slice_,
        raw=raw,
        mapped=mapped,
        labels=labels,
        temperature=scale,
        threshold=section.number("threshold") if "threshold" in section else thresholds.get(name),
        reads=section.one_of("reads", ("user", "answer"), "user"),
        pair=(section.text("u"), section.text("v")) if "u" in section else None,
        classes=span.classes if span is not None else (),
        begins=span.begins if span is not None else (),
        whole_words=section.flag("whole_words", False),
        rules=rules,
        levels=_levels(section, scale),
        weak=section.raw("quality", None) in WEAK,
    )
    section.raw("cannot_give", None)
    section.done()
    return preset


def _levels(section: Reader, scale: float) -> tuple[Level, ...]:
    """Numbers by the input's length, shortest first."""
    levels: list[Level] = []
    for item in section.sections("levels") if "levels" in section else []:
        temperature = item.number("temperature", scale)
        if temperature <= 0:
            raise item.fail("temperature", "must be above 0")
        tokens = item.integer("tokens", least=1)
        if levels and tokens <= levels[-1].tokens:
            raise item.fail("tokens", "must be larger than that of the level before")
        levels.append(Level(tokens, temperature, item.number("threshold") if "threshold" in item else None))
        item.done()
    return tuple(levels)


def _rules(section: Reader, kind: QuestionType) -> str | None:
    """The recognisers beside the model: where personal data is, or whether there is any, of one text."""
    if "rules" not in section:
        return None
    if kind not in (QuestionType.SPAN, QuestionType.NOUL) or "u" in section:
        raise section.fail("rules", "only a span or a noul about one text can have them")
    return section.one_of("rules", (RULES,))


def _classes(section: Reader) -> _Classes:
    """`labels` alone: class 0 is outside and the labels follow. `classes`: every class as BIO taggers name them."""
    if "classes" not in section:
        raw = section.texts("labels")
        return _Classes(raw, (-1, *range(len(raw))), (False,) * (len(raw) + 1))
    names = section.texts("classes")
    bare = [bare_label(name) for name in names]
    if None not in bare:
        raise section.fail("classes", f"holds no {_OUTSIDE!r}, the class of tokens that belong to nothing")
    raw = section.texts("labels", [label for label in dict.fromkeys(bare) if label is not None])
    places = {label: index for index, label in enumerate(raw)}
    for label in bare:
        if label is not None and label not in places:
            raise section.fail("labels", f"lacks {label!r}, which classes has")
    places_of = tuple(-1 if label is None else places[label] for label in bare)
    return _Classes(raw, places_of, tuple(name[:2] in ("B-", "S-", "U-") for name in names))


def bare_label(tag: str) -> str | None:
    """A tag of a token classifier without its position prefix (`B-`, `I-`, also `E-`, `S-`, `L-`, `U-`).

    None for the outside tag.
    """
    if tag.upper() in (_OUTSIDE, "OUTSIDE"):
        return None
    return tag[2:] if len(tag) > 2 and tag[0] in "BIESLU" and tag[1] in "-_" else tag


def _check_sides(section: Reader, raw: tuple[str, ...], mapped: tuple[str | None, ...]) -> None:
    if "label_map" not in section and raw not in (("false", "true"), ("true",)):
        raise section.fail("options", 'of a noul must be ["false", "true"], or need a label_map to true and false')
    if not set(mapped) <= _SIDES or "true" not in mapped:
        raise section.fail("label_map", "of a noul must map every label to true or false")


def _mapped(section: Reader, raw: tuple[str, ...], default: str) -> tuple[str | None, ...]:
    """The label each raw label becomes; null goes to `other` or is dropped, as `unmapped` says."""
    rest = None if section.one_of("unmapped", ("other", "drop"), default) == "drop" else "other"
    if "label_map" not in section:
        return tuple(raw)
    table = section.section("label_map")
    mapped: list[str | None] = []
    for label in raw:
        value = table.raw(label, None)
        if value is not None and not isinstance(value, str):
            raise table.fail(label, "must be a label or null")
        mapped.append(rest if value is None else value)
    table.done()
    return tuple(mapped)


def _slice(section: Reader, raw: tuple[str, ...]) -> tuple[int, int]:
    bounds = section.raw("slice")
    if not isinstance(bounds, list) or len(bounds) != 2 or not all(isinstance(side, int) for side in bounds):
        raise section.fail("slice", "must be [first, last + 1]")
    if bounds[1] - bounds[0] != len(raw) or bounds[0] < 0:
        raise section.fail("slice", f"must span the {len(raw)} options")
    return bounds[0], bounds[1]
