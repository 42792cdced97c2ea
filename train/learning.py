"""The loss of a step: of heads by labels, of tokens by spans, of pairs, and of how far the encoder has drifted.

The vector of a text is kept near that of the published encoder, because questions in an operator's own words are
answered by comparing vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from train.collecting import Text
from train.drawing import Draw
from train.encoder import LAYERS, Encoder, pooled
from train.examples import HAZARD, HAZARDS, Example, hazards_of
from train.layout import CLASSES, HEADS, PAIRS, head_slice, pair_slice
from train.net import Net
from train.rows import MOST, UNKNOWN, batches, padded, token_classes, tokens

FROZEN: Final = 3
"""Layers, from the bottom, that stay as published. They are the larger part of the time that learning would take."""

_SMOOTHING: Final = 0.03
_SHARP: Final = ("jailbreak", "safety")
"""Heads whose labels are taken as they are: smoothing would crowd attacks where thresholds of long inputs stand."""
_PAIR_SMOOTHING: Final = 0.05
_NEAR: Final = 3.0
_PAIR_WEIGHT: Final = 0.5
_TEACHING: Final = 0.3
_HAZARD_WEIGHT: Final = 4.0
_COMPARED: Final = 3
"""Every so many batches the published encoder reads, too."""

_MOST_TOKENS: Final = 2048
_MOST_ROWS: Final = 24

Teacher = Callable[[Tensor], Tensor]
"""P(attack) [rows] of vectors of the published encoder."""


@dataclass(slots=True)
class Losses:
    """Parts of the loss of a step, by name."""

    parts: dict[str, Tensor] = field(default_factory=dict)

    def add(self, name: str, value: Tensor, weight: float = 1.0) -> None:
        """Count a part."""
        self.parts[name] = value * weight

    @property
    def total(self) -> Tensor:
        """Their sum."""
        return torch.stack(list(self.parts.values())).sum()


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the rows of a step gave, in the order of their texts.

    `near` are vectors of the published encoder, of the texts at `compared` only.
    """

    pooled: Tensor
    heads: Tensor
    near: Tensor
    compared: list[int]
    spans: list[Tensor]
    span_classes: list[Tensor]


class Lesson:
    """Computes the loss of steps."""

    def __init__(self, net: Net, published: Encoder, tokenizer: Tokenizer, teacher: Teacher | None) -> None:
        self._net, self._published, self._tokenizer, self._teacher = net, published, tokenizer, teacher
        self._turn = 0

    def skip(self, draw: Draw) -> None:
        """Pass over a step that was done before."""
        self._turn += 1

    def losses(self, draw: Draw) -> Losses:
        """All parts of the loss of one step."""
        texts = [row.text for row in draw.texts]
        firsts = [pair.previous for pair in draw.pairs]
        seconds = [pair.text for pair in draw.pairs]
        self._turn += 1
        seen = self._read([*texts, *firsts, *seconds], draw.texts)
        found = Losses()
        for task in HEADS:
            if task == HAZARD:
                self._hazard(found, seen.heads, draw.texts)
            else:
                self._choice(found, task, seen.heads, draw.texts)
        if seen.spans:
            logits, classes = torch.cat(seen.spans), torch.cat(seen.span_classes)
            found.add("pii", functional.cross_entropy(logits, classes, ignore_index=UNKNOWN))
        self._pairs(found, seen.pooled[len(texts) :], draw.pairs)
        if seen.compared:
            found.add("near", (1 - (seen.pooled[seen.compared] * seen.near).sum(-1)).mean(), _NEAR)
            self._taught(found, seen, draw.texts)
        return found

    def _read(self, texts: Sequence[str], labelled: Sequence[Text]) -> _Seen:
        rows = tokens(self._tokenizer, texts, MOST)
        encoder = self._net.encoder
        order: list[int] = []
        compared: list[int] = []
        vectors, heads, near, spans, classes = [], [], [], [], []
        for number, batch in enumerate(batches([len(row.ids) for row in rows], _MOST_TOKENS, _MOST_ROWS)):
            ids, mask = (torch.from_numpy(part) for part in padded([rows[place].ids for place in batch]))
            bias = encoder.bias(mask)
            with torch.no_grad():
                low = encoder.run(encoder.embed(ids), bias, 0, FROZEN)
                if (number + self._turn) % _COMPARED == 0:
                    near.append(pooled(self._published.run(low, bias, FROZEN, LAYERS), mask))
                    compared += batch
            read = self._net.read(encoder.run(low, bias, FROZEN, LAYERS), mask)
            order += batch
            vectors.append(read.pooled)
            heads.append(read.heads)
            for index, place in enumerate(batch):
                given = labelled[place].spans if place < len(labelled) else None
                if given is not None:
                    known = token_classes(rows[place], given, CLASSES)
                    spans.append(read.spans[index, : len(known)])
                    classes.append(torch.tensor(known))
        back = torch.argsort(torch.tensor(order))
        known_near = torch.cat(near) if near else torch.empty(0)
        return _Seen(torch.cat(vectors)[back], torch.cat(heads)[back], known_near, compared, spans, classes)

    def _choice(self, found: Losses, task: str, heads: Tensor, texts: Sequence[Text]) -> None:
        places = [place for place, row in enumerate(texts) if task in row.labels]
        if not places:
            return
        first, last = head_slice(task)
        wanted = torch.tensor([HEADS[task].index(texts[place].labels[task]) for place in places])
        weights = torch.tensor([texts[place].weights.get(task, 1.0) for place in places])
        smoothing = 0.0 if task in _SHARP else _SMOOTHING
        loss = functional.cross_entropy(heads[places, first:last], wanted, label_smoothing=smoothing, reduction="none")
        found.add(task, (loss * weights).sum() / weights.sum())

    def _hazard(self, found: Losses, heads: Tensor, texts: Sequence[Text]) -> None:
        places = [place for place, row in enumerate(texts) if HAZARD in row.labels]
        if not places:
            return
        first, last = head_slice(HAZARD)
        given = [hazards_of(texts[place].labels[HAZARD]) for place in places]
        wanted = torch.tensor([[float(hazard in labels) for hazard in HAZARDS] for labels in given])
        loss = functional.binary_cross_entropy_with_logits(heads[places, first:last], wanted)
        found.add(HAZARD, loss, _HAZARD_WEIGHT)

    def _pairs(self, found: Losses, vectors: Tensor, pairs: Sequence[Example]) -> None:
        if not pairs:
            return
        logits = self._net.pair(vectors[: len(pairs)], vectors[len(pairs) :])
        for task, labels in PAIRS.items():
            places = [place for place, pair in enumerate(pairs) if pair.task == task]
            if not places:
                continue
            first, last = pair_slice(task)
            wanted = torch.tensor([labels.index(pairs[place].label) for place in places])
            loss = functional.cross_entropy(logits[places, first:last], wanted, label_smoothing=_PAIR_SMOOTHING)
            found.add(task, loss, _PAIR_WEIGHT)

    def _taught(self, found: Losses, seen: _Seen, texts: Sequence[Text]) -> None:
        """Short texts that nobody labelled for attacks: what another guard, shrunk towards no, thinks of them."""
        rows = [row for row, place in enumerate(seen.compared) if place < len(texts)]
        rows = [row for row in rows if "jailbreak" not in texts[seen.compared[row]].labels]
        if not rows or self._teacher is None:
            return
        first, last = head_slice("jailbreak")
        attack = self._teacher(seen.near[rows]) * 0.5
        wanted = torch.stack([1 - attack, attack], 1)
        logits = seen.heads[[seen.compared[row] for row in rows], first:last]
        found.add("taught", -(wanted * logits.log_softmax(-1)).sum(-1).mean(), _TEACHING)
