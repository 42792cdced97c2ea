"""Answers that a model gave, kept for the next request that asks the very same.

A key is a digest of the exact text and one of the exact question. The digest of a text is keyed with a secret that
lives and dies with the process, so that neither a text nor anything it could be guessed from is kept. Unknown answers
are never kept.

Source: "Performance and cost" (Batching: answers are reused).
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final

from router.questions import Answer, Unknown

CAPACITY: Final = 4096
CAPACITY_ENV: Final = "VLLM_SRUN_RESULT_CACHE"
FOREIGN_TTL_S: Final = 600.0
"""How long answers live of a model that may change without our seeing it."""

_MOST = 10_000_000
_SECRET = secrets.token_bytes(32)
_DIGEST_BYTES = 16


def text_digest(text: str) -> bytes:
    """What stands for a text in keys of this process."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=_SECRET, digest_size=_DIGEST_BYTES).digest()


def question_digest(question: bytes) -> bytes:
    """What stands for a question, as it is written to the model."""
    return hashlib.blake2b(question, digest_size=_DIGEST_BYTES).digest()


def capacity_from(environ: Mapping[str, str]) -> int:
    """How many answers to keep per model; 0 keeps none. Raises ValueError when the variable is not such a number."""
    text = environ.get(CAPACITY_ENV, "").strip()
    if not text:
        return CAPACITY
    if not text.isascii() or not text.isdigit() or int(text[:9]) > _MOST:
        raise ValueError(f"{CAPACITY_ENV} must be a number of answers from 0 to {_MOST}")
    return int(text)


class AnswerCache:
    """The last `capacity` answers of one model. `ttl_s` None keeps them until they are pushed out.

    `epoch` changes whenever everything is dropped: an answer is only put in under the epoch that it was asked in.
    """

    __slots__ = ("_answers", "_capacity", "_clock", "_identity", "_ttl_s", "epoch")

    def __init__(
        self, capacity: int = CAPACITY, *, ttl_s: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._capacity = capacity
        self._ttl_s = ttl_s
        self._clock = clock
        self._answers: OrderedDict[bytes, tuple[Answer, float]] = OrderedDict()
        self._identity: str | None = None
        self.epoch = 0

    def __len__(self) -> int:
        return len(self._answers)

    @property
    def is_on(self) -> bool:
        """Whether anything is ever kept."""
        return self._capacity > 0

    def get(self, key: bytes) -> Answer | None:
        """The answer, which counts as used now; None when there is none or it is too old."""
        found = self._answers.get(key)
        if found is None:
            return None
        answer, put_at = found
        if self._ttl_s is not None and self._clock() - put_at >= self._ttl_s:
            del self._answers[key]
            return None
        self._answers.move_to_end(key)
        return answer

    def put(self, key: bytes, answer: Answer, epoch: int) -> None:
        """Keep an answer that was asked for in `epoch`; the one unused for longest makes room."""
        if isinstance(answer, Unknown) or epoch != self.epoch or not self._capacity:
            return
        self._answers[key] = (answer, self._clock())
        self._answers.move_to_end(key)
        if len(self._answers) > self._capacity:
            self._answers.popitem(last=False)

    def answered_by(self, identity: str) -> bool:
        """Note who answers. When it is somebody else than before, everything is dropped; then True."""
        changed = self._identity is not None and identity != self._identity
        if changed:
            self.clear()
        self._identity = identity
        return changed

    def clear(self) -> None:
        """Drop everything, also what is being asked now."""
        self._answers.clear()
        self.epoch += 1
