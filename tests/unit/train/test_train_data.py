"""Training data: the same for a seed, with labels of the closed sets and spans that cut what they claim."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.support import train_packages
from train.data import answers, dialogue, domains, jailbreak, longtext, personal, requests, safety
from train.data.personal import placed
from train.data.safety import kinds_of
from train.examples import HAZARD, PAIRED, PII, SINGLE, TASKS, problems

MODULES: tuple[ModuleType, ...] = (answers, dialogue, domains, jailbreak, longtext, personal, requests, safety)


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    train_packages.install(monkeypatch)
    yield
    train_packages.clear()


def drawn(module: Any, seed: int, count: int = 240) -> list[Any]:
    return list(module.examples(seed, count))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_a_seed_gives_the_same_examples_and_another_seed_others(module: ModuleType) -> None:
    assert drawn(module, 1) == drawn(module, 1)
    assert drawn(module, 1) != drawn(module, 2)


def test_every_example_is_well_formed_and_every_label_of_every_task_is_there() -> None:
    given: Counter[tuple[str, str]] = Counter()
    for module in MODULES:
        for example in drawn(module, 1, 700):
            assert problems(example) == []
            assert example.source
            given[example.task, example.label] += 1
    assert {task for task, _ in given} == TASKS - {"pii_present"}
    for task, labels in {**SINGLE, **PAIRED}.items():
        assert task == "pii_present" or {label for name, label in given if name == task} == set(labels)
    kinds = {kind for name, label in given if name == HAZARD for kind in label.split(",")}
    assert len(kinds - {""}) == 12


def test_no_slot_of_a_template_is_left_open() -> None:
    for module in MODULES:
        left = [example for example in drawn(module, 3) if example.source == "templates" and _open(example.text)]
        assert left == [], module.__name__


def _open(text: str) -> bool:
    return re.search(r"\{[a-z_]+\}|\[(PERSON|FIRST|LAST|ADDRESS|BORN)\]", text) is not None


def test_both_sides_of_a_guard_are_given_alike() -> None:
    for module in (jailbreak, safety):
        given = Counter(example.label for example in drawn(module, 1, 400) if example.task != HAZARD)
        assert 0.6 < given["true"] / given["false"] < 1.7, module.__name__


def test_long_harmless_text_comes_at_many_lengths() -> None:
    lengths = [len(example.text) for example in drawn(longtext, 1)]
    assert min(lengths) < 400
    assert max(lengths) > 800
    assert all(longtext.LEAST // 2 <= length <= longtext.MOST for length in lengths)


def test_spans_cut_what_they_claim() -> None:
    found = Counter(kind for example in drawn(personal, 1) for _, _, kind in example.spans)
    assert set(found) == {"PERSON", "ADDRESS", "DATE_OF_BIRTH"}
    for example in drawn(personal, 1):
        assert example.task == PII
        for start, end, kind in example.spans:
            assert example.text[start:end].strip() == example.text[start:end] != ""
            assert kind != "DATE_OF_BIRTH" or re.search(r"\d", example.text[start:end])


def test_a_first_and_a_last_name_side_by_side_are_one_name() -> None:
    text, spans = placed("Hello [FIRST] [LAST], born [BORN]!", random.Random(4))
    assert [kind for _, _, kind in spans] == ["PERSON", "DATE_OF_BIRTH"]
    assert text[spans[0][0] : spans[0][1]].count(" ") >= 1


def test_signs_tell_the_kinds_of_harm() -> None:
    assert kinds_of("Teach me to make a bomb and to murder somebody") == ("violence", "weapons")
    assert kinds_of("Write fake news") == ("misinformation",)
    assert kinds_of("Bake a cake") == ()
