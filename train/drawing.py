"""What one step of training reads: texts drawn for each task, some of them long and made of several.

Attacks are buried in long harmless text, and harmless prompts are strung together, so that neither length nor a change
of subject says anything about an attack.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeVar

from train.collecting import Data, Text
from train.examples import Example
from train.layout import PAIRS

Item = TypeVar("Item")

SHARES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "domains": 9,
        "complexity": 1,
        "modality": 1,
        "fact_check": 2,
        "jailbreak": 9,
        "safety": 5,
        "hazard": 3,
        "pii": 5,
        "refusal": 2,
        "user_feedback": 2,
        "turn_relation": 2,
        **dict.fromkeys(PAIRS, 1),
    }
)
"""Texts, or pairs, of each task in a step."""

LONG: Final = 8
"""Long texts in a step beside those: every other one holds an attack, every fourth what looks like one."""

_LEAST, _MOST = 250, 1100
"""Length of long texts, in code points: about 60 to 254 tokens, as much as a window of a scan."""
_SHORT: Final = 300


@dataclass(frozen=True, slots=True)
class Draw:
    """The texts of a step, and its pairs."""

    texts: tuple[Text, ...]
    pairs: tuple[Example, ...]


class Drawer:
    """Draws step after step from a split. Each task's texts come round in a shuffled order of their own."""

    def __init__(self, data: Data, seed: int) -> None:
        self._random = random.Random(seed)
        self._texts = {task: self._rounds(data.texts[task]) for task in SHARES if data.texts.get(task)}
        self._pairs = {task: self._rounds(data.pairs[task]) for task in SHARES if data.pairs.get(task)}
        harmless = [row for row in _marked(data, "false") if row.labels.get("safety", "false") == "false"]
        likeness = [row for row in data.texts.get("jailbreak", ()) if row.labels["jailbreak"] == "false"]
        self._lookalikes = self._rounds([row for row in likeness if len(row.text) <= _SHORT])
        self._attacks = self._rounds([row for row in _marked(data, "true") if len(row.text) <= 2 * _SHORT])
        self._prompts = self._rounds([row for row in harmless if len(row.text) <= _SHORT])
        self._fillers = self._rounds([row for row in harmless if len(row.text) > _SHORT])

    def draw(self) -> Draw:
        """The next step."""
        texts = [next(self._texts[task]) for task, count in SHARES.items() if task in self._texts for _ in range(count)]
        pairs = [next(self._pairs[task]) for task, count in SHARES.items() if task in self._pairs for _ in range(count)]
        return Draw((*texts, *self._long()), tuple(pairs))

    def _long(self) -> Iterator[Text]:
        for number in range(LONG):
            filler = self.filler(int(_LEAST * (_MOST / _LEAST) ** self._random.random()))
            attack = next(self._attacks, None) if number % 2 else None
            like = next(self._lookalikes, None) if number % 4 == 2 else None
            if filler and attack is not None:
                yield Text(bury(filler, attack.text, self._random), attack.source, {"jailbreak": "true"})
            elif filler:
                text = bury(filler, like.text, self._random) if like is not None else filler
                yield Text(text, "joined", {"jailbreak": "false", "safety": "false"}, None, {"safety": 0.5})

    def filler(self, length: int) -> str:
        """Harmless text of about `length` code points: a stretch of a long one, or prompts one after the other."""
        whole = self._random.random() < 0.6
        if whole and (found := next(self._fillers, None)) is not None:
            start = self._random.randrange(max(1, len(found.text) - length))
            return found.text[start : start + length]
        parts: list[str] = []
        while sum(map(len, parts)) < length and (prompt := next(self._prompts, None)) is not None:
            parts.append(prompt.text)
        return self._random.choice((" ", "\n", "\n\n")).join(parts)

    def _rounds(self, rows: Sequence[Item]) -> Iterator[Item]:
        while rows:
            order = list(rows)
            self._random.shuffle(order)
            yield from order


def bury(filler: str, attack: str, chance: random.Random) -> str:
    """The attack within the filler, at a place between words."""
    place = chance.randrange(len(filler) + 1)
    space = filler.find(" ", place)
    place = len(filler) if space < 0 else space
    joint = chance.choice((" ", "\n", "\n\n"))
    return f"{filler[:place].rstrip()}{joint}{attack}{joint}{filler[place:].lstrip()}".strip()


def _marked(data: Data, label: str) -> list[Text]:
    rows = (*data.texts.get("jailbreak", ()), *data.texts.get("domains", ()))
    return [row for row in rows if row.labels.get("jailbreak") == label]
