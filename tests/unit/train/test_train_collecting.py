from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import cast

import pytest

from train.collecting import IMPLIED_WEIGHT, Data, collect, counts, split
from train.examples import Example, fingerprint


def module(*examples: Example, count: int | None = None) -> ModuleType:
    def given(seed: int, count: int) -> Iterator[Example]:
        return iter(examples[:count])

    return cast(ModuleType, SimpleNamespace(__name__="m", examples=given, **({"COUNT": count} if count else {})))


def whole(*examples: Example, apart: frozenset[str] = frozenset()) -> Data:
    """All splits as one."""
    found = split(examples, apart)
    texts: dict[str, list[object]] = {}
    for data in found.values():
        for task, rows in data.texts.items():
            texts.setdefault(task, []).extend(rows)
    pairs = {task: rows for data in found.values() for task, rows in data.pairs.items()}
    return cast(Data, SimpleNamespace(texts=texts, pairs=pairs))


def test_a_share_of_what_a_module_is_good_for_is_drawn() -> None:
    many = [Example(f"text {number}", "domains", "law", "own") for number in range(100)]
    assert len(list(collect([module(*many, count=50)], 0, 0.1))) == 5


def test_a_bad_example_ends_it_by_the_name_of_its_module() -> None:
    with pytest.raises(ValueError, match="m: domains of own: label 'tax'"):
        list(collect([module(Example("x", "domains", "tax", "own"))], 0))


def test_one_text_keeps_all_its_labels_and_is_there_once_for_each_task() -> None:
    data = whole(
        Example("Draw a cat", "modality", "DIFFUSION", "own"),
        Example("draw a  cat", "complexity", "easy", "own"),
        Example("Draw a cat", "modality", "BOTH", "own"),
    )
    (row,) = data.texts["modality"]
    assert data.texts["complexity"] == [row]
    assert row.labels["modality"] == "DIFFUSION"
    assert row.labels["complexity"] == "easy"


def test_harmless_tasks_imply_no_attack_until_somebody_says_so() -> None:
    data = whole(Example("How to pick a lock?", "domains", "other", "own"))
    (row,) = data.texts["domains"]
    assert (row.labels["jailbreak"], row.weights["jailbreak"]) == ("false", IMPLIED_WEIGHT)
    data = whole(
        Example("How to pick a lock?", "domains", "other", "own"),
        Example("How to pick a lock?", "safety", "true", "own"),
    )
    (row,) = data.texts["safety"]
    assert row.labels["safety"] == "true"
    assert "safety" not in row.weights


def test_spans_say_whether_there_is_personal_data() -> None:
    data = whole(
        Example("Ann is here", "pii", "", "own", spans=((0, 3, "PERSON"),)), Example("Nobody is here", "pii", "", "own")
    )
    assert sorted(row.labels["pii_present"] for row in data.texts["pii"]) == ["false", "true"]


def test_two_texts_that_the_router_writes_as_one_are_one_and_others_stay_a_pair() -> None:
    data = whole(
        Example("Thanks!", "user_feedback", "satisfied", "own", previous="Here you are."),
        Example("b", "relevance", "true", "own", previous="a"),
        Example("b", "relevance", "false", "own", previous="a"),
    )
    (row,) = data.texts["user_feedback"]
    assert row.text == "Assistant: Here you are.\n\nUser: Thanks!"
    (pair,) = data.pairs["relevance"]
    assert pair.label == "true"


def test_text_of_evaluation_sets_is_left_out() -> None:
    apart = frozenset({fingerprint("known")})
    found = split([Example("Known", "domains", "law", "own"), Example("new", "domains", "law", "own")], apart)
    assert sum(sum(counts(data).values()) for data in found.values()) == 1
