"""The artifact that is never wrong really is not: its answers are those of a search for its phrases."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from router.config.sizes import room_for_text
from router.questions import NoulAnswer, Question, QuestionType, SpanAnswer
from router.runtime.adapters import adapter_for
from router.runtime.artifact import open_artifact
from router.runtime.asking import Adapter, Answered, Asked, Failure
from router.runtime.checking import check
from router.runtime.engine import Engine
from router.runtime.model import load_model
from tests.support.artifacts_exact import ATTACKS, HARM, MOST_TOKENS, PERSONAL, build_exact_artifact

ASKED = [
    Asked(Question(QuestionType.NOUL, preset="jailbreak")),
    Asked(Question(QuestionType.NOUL, preset="safety")),
    Asked(Question(QuestionType.SPAN, preset="pii")),
]
ROOM = room_for_text(MOST_TOKENS) or 0


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_exact_artifact(tmp_path_factory.mktemp("exact"))


@pytest.fixture(scope="module")
def model(directory: Path) -> Adapter:
    artifact = open_artifact(str(directory))
    return adapter_for(artifact, Engine(artifact, "cpu"))


def read(model: Adapter, text: str) -> tuple[float, float, list[tuple[int, int]]]:
    plan = model.plan(text, ASKED)
    answers = model.answer(plan, [model.run([row])[0] for row in plan.rows])
    attack, harm, places = (_whole(answer) for answer in answers)
    assert isinstance(attack, NoulAnswer)
    assert isinstance(harm, NoulAnswer)
    assert isinstance(places, SpanAnswer)
    return attack.probability, harm.probability, [(span.start, span.end) for span in places.spans]


def _whole(answer: Answered | Failure) -> object:
    assert isinstance(answer, Answered), answer
    assert answer.complete
    return answer.answer


def words(count: int, seed: int, kinds: Sequence[str]) -> str:
    """Random text made of parts of what the model knows, so that nearly everything nearly matches."""
    chance = random.Random(seed)
    return "".join(chance.choice(kinds) for _ in range(count))


def test_it_passes_the_check_of_artifacts(directory: Path) -> None:
    report = check(str(directory))
    assert (report.failures, report.warnings) == ([], [])
    assert report.golden >= 4


def test_it_can_be_served_although_a_word_is_many_of_its_tokens(directory: Path) -> None:
    load_model(str(directory), "cpu").close()


@pytest.mark.parametrize("place", [0, 1, ROOM // 2, ROOM - len(ATTACKS[0])])
def test_one_attack_in_the_longest_window_is_sure_wherever_it_stands(model: Adapter, place: int) -> None:
    harmless = words(ROOM, 1, "ignore al pvustc")[:ROOM]
    text = harmless[:place] + ATTACKS[0] + harmless[place + len(ATTACKS[0]) :]
    assert len(text.encode()) == ROOM
    assert read(model, text)[0] > 0.999
    assert read(model, harmless)[0] < 0.001


def test_a_phrase_that_differs_in_any_one_letter_is_not_it(model: Adapter) -> None:
    for place in range(len(ATTACKS[0])):
        changed = ATTACKS[0][:place] + "#" + ATTACKS[0][place + 1 :]
        assert read(model, f"so {changed} it said")[0] < 0.001


@pytest.mark.parametrize("seed", range(5))
def test_its_answers_are_those_of_a_search(model: Adapter, seed: int) -> None:
    parts = [ATTACKS[0], ATTACKS[1][:-1], HARM, PERSONAL, " ", "é", "\U0001f600", "ignore", "rosalind@", "how to forge"]
    text = words(4 + seed, seed, parts)
    at = [place for place in range(len(text)) if text.startswith(PERSONAL, place)]
    attack, harm, places = read(model, text)
    assert (attack > 0.5) == any(phrase in text for phrase in ATTACKS)
    assert (harm > 0.5) == (HARM in text)
    assert [place for start, end in places for place in range(start, end)] == [
        place for start in at for place in range(start, start + len(PERSONAL))
    ]
