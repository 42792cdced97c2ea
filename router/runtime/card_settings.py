"""The section of a card that belongs to its adapter: `marker_row`, `gliclass`, `gliner` or `encoder`."""

from __future__ import annotations

from collections.abc import Callable

from router.questions import QuestionType

from .card import Encoder, Gliclass, Gliner, MarkerRow, Settings
from .reading import Reader

POOLINGS = ("mean", "cls", "none")
_MARKED = ("choice", "score", "noul")


def read_settings(top: Reader, adapter: str) -> Settings | None:
    """The adapter's own section; None for adapters that have none. Raises ArtifactError."""
    readers: dict[str, Callable[[Reader], Settings]] = {
        "marker_row": _marker_row,
        "gliclass": _gliclass,
        "gliner": _gliner,
        "encoder": _encoder,
    }
    read = readers.get(adapter)
    if read is None:
        return None
    section = top.section(adapter)
    settings = read(section)
    section.done()
    return settings


def _marker_row(section: Reader) -> MarkerRow:
    kinds = section.section("kinds", {name: place for place, name in enumerate(_MARKED)})
    noul = section.section("noul", {"false": "no, the statement does not hold", "true": "yes, the statement holds"})
    settings = MarkerRow(
        mask=section.integer("mask"),
        head_tokens=section.integer("head_tokens", least=8),
        option_tokens=section.integer("option_tokens", 48, least=1),
        question=section.text("question", "{type} question: {instructions}"),
        noul=(noul.text("false"), noul.text("true")),
        kinds={QuestionType(name): kinds.integer(name) for name in _MARKED if name in kinds},
    )
    noul.done()
    kinds.done()
    return settings


def _gliclass(section: Reader) -> Gliclass:
    return Gliclass(
        label=section.integer("label"),
        separator=section.integer("separator"),
        prompt_first=section.flag("prompt_first", True),
        label_tokens=section.integer("label_tokens", 32, least=1),
    )


def _gliner(section: Reader) -> Gliner:
    return Gliner(
        entity=section.integer("entity"),
        separator=section.integer("separator"),
        mode=section.one_of("mode", ("span", "token"), "span"),
        max_width=section.integer("max_width", 12, least=1),
        max_words=section.integer("max_words", 384, least=1),
        label_tokens=section.integer("label_tokens", 32, least=1),
    )


def _encoder(section: Reader) -> Encoder:
    return Encoder(section.one_of("pooling", POOLINGS, "mean"))
