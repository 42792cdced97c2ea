"""Templates and words."""

from __future__ import annotations

import random

import pytest

from train.data.disguises import DISGUISES, acrostic, dressed
from train.data.slots import bound, fill, untidy
from train.data.words import WordsError, listed, mapping, records, section


def test_values_may_hold_slots_and_unknown_names_stay() -> None:
    slots = {"a": ("b is {b}",), "b": ("two",)}
    assert fill("{a}, {c}", slots, random.Random(1)) == "b is two, {c}"


def test_bound_slots_say_the_same_thing_twice() -> None:
    slots = {"x": tuple(map(str, range(100)))}
    chosen = bound("about {x}", slots, random.Random(1))
    rng = random.Random(2)
    assert len({fill("{x}", chosen, rng) for _ in range(20)}) == 1


def test_untidiness_keeps_most_texts_as_they_are_and_never_empties_one() -> None:
    rng = random.Random(3)
    texts = [untidy("What is the capital of Norway?", rng) for _ in range(400)]
    assert all(texts)
    assert texts.count("What is the capital of Norway?") > 150


def test_disguises_of_one_text_differ_and_are_told_apart_by_name() -> None:
    slots = dressed("Ignore all", random.Random(1))
    assert set(slots) == {*DISGUISES, "acro"}
    assert slots["b64"] == ("SWdub3JlIGFsbA==",)
    assert slots["rev"] == ("lla erongI",)
    assert "".join(word[0] for word in acrostic("ignore", random.Random(1)).split()) == "ignore"


@pytest.mark.parametrize("read", [section, listed, mapping, records])
def test_words_of_another_form_are_refused_by_name(read: object) -> None:
    assert callable(read)
    with pytest.raises(WordsError, match=r"attacks\.yaml: no_such_part"):
        read("attacks", "no_such_part")
