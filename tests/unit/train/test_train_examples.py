from collections import Counter

import pytest

from train.examples import Example, fingerprint, hazards_of, problems, split_of, without


def test_a_split_depends_on_texts_and_source_alone() -> None:
    one = Example("What is  a Mole?", "domains", "chemistry", "own")
    assert split_of(one) == split_of(Example("what is a mole?", "fact_check", "true", "own", lang="de"))
    counts = Counter(split_of(Example(f"text {number}", "domains", "other", "own")) for number in range(4000))
    assert 0.07 < counts["test"] / 4000 < 0.13
    assert 0.07 < counts["calibration"] / 4000 < 0.13


@pytest.mark.parametrize(
    ("example", "word"),
    [
        (Example("x", "weather", "sun", "own"), "no such task"),
        (Example("x", "domains", "cooking", "own"), "none of"),
        (Example(" ", "domains", "law", "own"), "empty"),
        (Example("x", "domains", "law", "own", previous="y"), "previous"),
        (Example("x", "relevance", "true", "own"), "previous"),
        (Example("x", "hazard", "violence,rudeness", "own"), "twelve"),
        (Example("Ann", "pii", "", "own", spans=((0, 4, "PERSON"),)), "span"),
        (Example("Ann", "pii", "", "own", spans=((0, 3, "EMAIL"),)), "span"),
    ],
)
def test_a_bad_example_is_named_without_its_text(example: Example, word: str) -> None:
    found = problems(example)
    assert len(found) == 1
    assert word in found[0]


def test_good_examples_have_no_problems() -> None:
    assert problems(Example("Ann is here", "pii", "", "own", spans=((0, 3, "PERSON"),))) == []
    assert problems(Example("x", "hazard", "", "own")) == []
    assert hazards_of("weapons,privacy") == ("weapons", "privacy")
    assert hazards_of("") == ()


def test_text_of_an_evaluation_set_is_left_out_by_either_text() -> None:
    apart = frozenset({fingerprint("Keep  me OUT")})
    examples = [
        Example("keep me out", "domains", "law", "own"),
        Example("b", "relevance", "true", "own", previous="KEEP me out"),
        Example("b", "relevance", "true", "own", previous="a"),
    ]
    assert list(without(examples, apart)) == examples[2:]
