"""Text to token ids and back to places in the text. Offsets are code points of the text as it was given.

Truncation and padding that a `tokenizer.json` may carry are switched off once, right after loading; nothing changes the
tokenizer afterwards, so that threads can share it. User text can never become a special token: texts that spell one are
broken up before, and ids that still are special are replaced after.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from tokenizers import Tokenizer as _Tokenizer

from .artifact import TOKENIZER_FILE, Artifact
from .card import Tokens
from .errors import ArtifactError
from .rows import Ids

CODE_POINTS_PER_TOKEN = 16
"""Text beyond this many code points a token is not even tokenised: ordinary text has 2 to 5."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A text as ids (no special tokens); `complete` is False when it was cut.

    `offsets` are the code points that each id came from, where they were asked for.
    """

    ids: Ids
    offsets: Sequence[tuple[int, int]]
    complete: bool

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Words:
    """Words as ids one after the other; word i is `ids[starts[i]:starts[i + 1]]`."""

    ids: Ids
    starts: Ids


class Tokenizer:
    """The artifact's tokenizer with its guard against forged special tokens."""

    def __init__(self, artifact: Artifact) -> None:
        """Load `tokenizer.json`. Raises ArtifactError when it is not one, or does not know the card's special ids."""
        path = artifact.path(TOKENIZER_FILE)
        # Else a batch, of one text even, is handed to a pool of threads that nobody has planned for.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        try:
            inner = _Tokenizer.from_file(str(path))
        except Exception as error:
            raise ArtifactError(str(path), f"is not a tokenizer: {type(error).__name__}") from None
        inner.no_truncation()
        inner.no_padding()
        self._inner = inner
        self._path = str(path)
        self._frame: Tokens = artifact.card.tokens
        self._forbidden = tuple(sorted(self._frame.forbidden, key=len, reverse=True))
        size = inner.get_vocab_size(with_added_tokens=True)
        for name, ident in (("pad", self._frame.pad), ("cls", self._frame.cls), ("sep", self._frame.sep)):
            if ident is not None and not 0 <= ident < size:
                raise ArtifactError(str(path), f"has no id {ident}, which the card calls tokens.{name}")
        self._unknown = self._unknown_id()
        special = {ident for ident, token in inner.get_added_tokens_decoder().items() if token.special}
        special |= {ident for ident in (self._frame.pad, self._frame.cls, self._frame.sep) if ident is not None}
        self._special = special - {self._unknown}

    def _unknown_id(self) -> int:
        model = self._inner.model
        token = getattr(model, "unk_token", None)
        ident = self._inner.token_to_id(token) if isinstance(token, str) else None
        return self._frame.pad if ident is None else int(ident)

    def neutral(self, text: str) -> str:
        """The text with forbidden texts broken: one code point of each becomes a space, so offsets stay true."""
        for spelled in self._forbidden:
            if spelled in text:
                text = text.replace(spelled, " " + spelled[1:])
        return text

    def encode(self, text: str, most: int, *, placed: bool = False) -> Encoded:
        """At most `most` tokens from the beginning of `text`; with their offsets when `placed`, which costs a sixth."""
        clipped = text[: most * CODE_POINTS_PER_TOKEN]
        plain = self.neutral(clipped)
        if placed:
            encoding = self._inner.encode(plain, add_special_tokens=False)
        else:
            (encoding,) = self._inner.encode_batch_fast([plain], add_special_tokens=False)
        ids = self._ids(encoding.ids)
        complete = len(clipped) == len(text) and len(ids) <= most
        return Encoded(ids[:most], encoding.offsets[:most] if placed else (), complete)

    def _ids(self, found: list[int]) -> Ids:
        """Ids of a text, without special ones."""
        if not self._special.isdisjoint(found):
            found = [self._unknown if ident in self._special else ident for ident in found]
        return np.array(found, dtype=np.int64)

    def words(self, words: Sequence[str], most: int) -> Words:
        """Each word by itself, as a text that was split before, with at most `most` tokens a word."""
        encoding = self._inner.encode(
            [self.neutral(word) for word in words], is_pretokenized=True, add_special_tokens=False
        )
        ids = self._ids(encoding.ids)
        of = np.array([-1 if place is None else place for place in encoding.word_ids], dtype=np.int64)
        pieces = [ids[:0]]
        starts = [0]
        bounds = np.searchsorted(of, np.arange(len(words) + 1))
        for first, last in pairwise(bounds):
            # A word that vanishes in normalisation still has its place.
            piece = ids[first : min(last, first + most)] if last > first else np.array([self._unknown], np.int64)
            pieces.append(piece)
            starts.append(starts[-1] + len(piece))
        return Words(np.concatenate(pieces), np.array(starts, np.int64))

    def require(self, name: str, ident: int | None) -> int:
        """An id that the card's `name` gives; no text can spell it from now on.

        Raises ArtifactError when the card gives none, or one that is not there.
        """
        if ident is None or not 0 <= ident < self._inner.get_vocab_size(with_added_tokens=True):
            what = "the card gives no id" if ident is None else f"has no id {ident}, which the card gives"
            raise ArtifactError(self._path, f"{what} for {name}")
        self._special.add(ident)
        return ident

    @property
    def framing(self) -> int:
        """How many special tokens frame a row."""
        return (self._frame.cls is not None) + (self._frame.sep is not None)

    def frame(self, ids: Ids) -> Ids:
        """Ids with the special tokens that begin and end a row. A row is never empty, whatever the text."""
        if not len(ids) and not self.framing:
            ids = np.array([self._unknown], dtype=np.int64)
        framed = np.empty(len(ids) + self.framing, dtype=np.int64)
        framed[self.leading : self.leading + len(ids)] = ids
        if self._frame.cls is not None:
            framed[0] = self._frame.cls
        if self._frame.sep is not None:
            framed[-1] = self._frame.sep
        return framed

    @property
    def leading(self) -> int:
        """How many special tokens stand before the text in a row."""
        return int(self._frame.cls is not None)


def windows(length: int, room: int, size: int, overlap: int) -> list[tuple[int, int]]:
    """Cut `length` tokens: one piece when they fit `room`, else windows of `size` sharing `overlap`, all full.

    Every token is in a window, and the last window ends at the last token.
    """
    if length <= room:
        return [(0, length)]
    size = min(size, room)
    step = size - overlap
    starts = [*range(0, length - size, step), length - size]
    return [(start, start + size) for start in starts]
