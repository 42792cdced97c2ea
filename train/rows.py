"""Texts as rows of tokens, cut and framed as the runtime does, and rows of about one length as batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

Ids = npt.NDArray[np.int64]

CLS: Final = 101
SEP: Final = 102
MOST: Final = 510
"""Tokens of a row beside the two that frame it."""

UNKNOWN: Final = -100
"""The class of a token of which nothing is known; the loss leaves it out."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text as ids with their frame. `offsets` are the code points of each id; (0, 0) for the frame."""

    ids: list[int]
    offsets: list[tuple[int, int]]


def open_tokenizer(file: Path) -> Tokenizer:
    """The tokenizer without the truncation and padding that its file brings."""
    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def tokens(tokenizer: Tokenizer, texts: Sequence[str], most: int = MOST) -> list[Tokens]:
    """Texts as framed rows of at most `most` tokens; what is longer is cut at its end."""
    found = tokenizer.encode_batch([text[: most * 16] for text in texts], add_special_tokens=False)
    return [Tokens([CLS, *each.ids[:most], SEP], [(0, 0), *each.offsets[:most], (0, 0)]) for each in found]


def batches(lengths: Sequence[int], most_tokens: int, most_rows: int) -> Iterator[list[int]]:
    """Places of rows in batches of rows of about one length, so that little is padding."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (lengths[place] * (len(batch) + 1) > most_tokens or len(batch) == most_rows):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def padded(rows: Sequence[Sequence[int]]) -> tuple[Ids, Ids]:
    """Ids and mask [rows, tokens]."""
    width = max(map(len, rows))
    ids = np.zeros((len(rows), width), np.int64)
    mask = np.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
        mask[place, : len(row)] = 1
    return ids, mask


def token_classes(row: Tokens, spans: Sequence[tuple[int, int, str]], classes: Sequence[str]) -> list[int]:
    """The class of every token: that of the span it is inside of, else 0; UNKNOWN for the frame."""
    found = []
    for start, end in row.offsets:
        if start == end:
            found.append(UNKNOWN)
            continue
        kinds = (kind for first, last, kind in spans if start < last and end > first)
        found.append(classes.index(next(kinds, classes[0])))
    return found
