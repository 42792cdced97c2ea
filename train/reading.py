"""What an exported model gives for texts: raw outputs, as the runtime will get them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import onnxruntime

from train.rows import CLS, MOST, SEP, batches, open_tokenizer, padded, tokens

Floats = npt.NDArray[np.float32]

_MOST_TOKENS: Final = 4096
_MOST_ROWS: Final = 8


class Output(NamedTuple):
    """Of one row: vector [384], logits of heads, logits of tokens [tokens with frame, classes]; how long the row is."""

    pooled: Floats
    heads: Floats
    spans: Floats
    tokens: int


class Reader:
    """An artifact's graphs, opened for reading many texts."""

    def __init__(self, folder: Path, threads: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        providers = ["CPUExecutionProvider"]
        self._model = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=providers)
        self._pair = onnxruntime.InferenceSession(str(folder / "pair.onnx"), options, providers=providers)
        self.tokenizer = open_tokenizer(folder / "tokenizer.json")

    def read(self, texts: Sequence[str], most: int = MOST) -> list[Output]:
        """Texts as far as one row reaches, in order."""
        return self.rows([row.ids for row in tokens(self.tokenizer, texts, most)])

    def windows(self, text: str, size: int, overlap: int) -> list[list[int]]:
        """A long text as framed rows, cut as the runtime cuts it."""
        (found,) = self.tokenizer.encode_batch([text], add_special_tokens=False)
        if len(found.ids) <= MOST:
            return [[CLS, *found.ids, SEP]]
        starts = [*range(0, len(found.ids) - size, size - overlap), len(found.ids) - size]
        return [[CLS, *found.ids[start : start + size], SEP] for start in starts]

    def rows(self, rows: Sequence[Sequence[int]]) -> list[Output]:
        """Framed rows, in order."""
        found: dict[int, Output] = {}
        for batch in batches([len(row) for row in rows], _MOST_TOKENS, _MOST_ROWS):
            ids, mask = padded([rows[place] for place in batch])
            pooled, heads, spans = self._model.run(None, {"input_ids": ids, "attention_mask": mask})
            for index, place in enumerate(batch):
                size = len(rows[place])
                found[place] = Output(pooled[index], heads[index], spans[index, :size], size)
        return [found[place] for place in range(len(rows))]

    def pairs(self, first: Sequence[str], second: Sequence[str]) -> Iterator[Floats]:
        """Logits of the pair heads, pair by pair."""
        read = self.read([*first, *second])
        for u, v in zip(read[: len(first)], read[len(first) :], strict=True):
            (logits,) = self._pair.run(None, {"u": u.pooled[np.newaxis], "v": v.pooled[np.newaxis]})
            yield logits[0]
