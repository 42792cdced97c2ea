"""Turns of conversations: how a person reacts to an answer, and how a turn relates to the one before it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from train.data.domains import TEMPLATES, everyday
from train.data.slots import fill, untidy
from train.data.words import records, section
from train.examples import PAIRED, Example

COUNT: Final = 10_000
_TASKS: Final = ("user_feedback", "turn_relation")
_OF_SCENES: Final[Mapping[str, str]] = {
    "need_clarification": "clar",
    "wrong_answer": "wrong",
    "want_different": "diff",
    "follow_up": "follow",
    "repeat": "repeat",
    "correction": "corr",
}
_JOINTS: Final = (" ", " ", "\n", " - ", ", ")


def examples(seed: int, count: int) -> Iterator[Example]:
    """The two tasks in turn, and their labels in turn."""
    rng = random.Random(f"dialogue {seed}")
    for number in range(count):
        task = _TASKS[number % 2]
        labels = PAIRED[task]
        label = labels[number // 2 % len(labels)]
        previous, text = _reaction(label, rng) if task == "user_feedback" else _relation(label, rng)
        yield Example(text, task, label, TEMPLATES, previous=previous)


def _reaction(label: str, rng: random.Random) -> tuple[str, str]:
    """The assistant's answer, and what the person says to it."""
    scene = rng.choice(records("scenes", "scenes"))
    answer = str(scene["a"][0])
    generic = section("scenes", "generic")
    if label == "no_feedback":
        return answer, _goes_on(scene, rng)
    if label == "satisfied":
        text = rng.choice(generic[label])
        # Thanks are often followed by the next request: the reaction is there all the same.
        if rng.random() < 0.15:
            text += rng.choice(_JOINTS) + everyday(rng)
        return answer, untidy(text, rng)
    texts = scene[_OF_SCENES[label]] if rng.random() < 0.55 else generic[label]
    text = rng.choice(texts)
    if rng.random() < 0.2:
        text = rng.choice(generic[label]) + " " + text
    return answer, untidy(text, rng)


def _goes_on(scene: Mapping[str, Sequence[str]], rng: random.Random) -> str:
    """A new request, or one that builds on the answer without a word about it."""
    if rng.random() < 0.35:
        return untidy(rng.choice(scene["follow"]), rng)
    if rng.random() < 0.3:
        return untidy(rng.choice(rng.choice(records("scenes", "scenes"))["q"]), rng)
    return everyday(rng)


def _relation(label: str, rng: random.Random) -> tuple[str, str]:
    """The earlier turn, and the turn."""
    scenes = records("scenes", "scenes")
    generic = section("scenes", "generic")
    scene = rng.choice(scenes)
    asked = rng.choice(scene["q"]) if rng.random() < 0.6 else everyday(rng)
    own = asked in scene["q"]
    if label == "new":
        other = rng.choice([one for one in scenes if one is not scene])
        return asked, untidy(rng.choice(other["q"]), rng) if rng.random() < 0.35 else everyday(rng)
    if own and rng.random() < 0.75:
        return asked, untidy(rng.choice(scene[_OF_SCENES[label]]), rng)
    slots = {"q": (asked,), "l": (asked[0].lower() + asked[1:],), "d": (*generic["detail"], *_requests(rng))}
    return asked, untidy(fill(rng.choice(generic[label]), slots, rng), rng)


def _requests(rng: random.Random) -> tuple[str, ...]:
    return tuple(everyday(rng) for _ in range(4))
