"""Which model a conversation has, so that its next turn goes to the same one while the same decision matches.

Another vendor's model refuses what the last one left in a conversation (signed thinking, ids of tool calls), and a
cached prefix is lost. Kept in this process only, under digests, for a bounded time and number of conversations.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from router.acting.target import Contest
from router.config.candidates import SESSION_HEADERS, ModelRef
from router.wire.request import LlmRequest
from router.wire.text import own_words

KEPT_S: Final = 3600.0
"""Seconds after its last turn for which a conversation keeps its model."""
MOST: Final = 50_000
"""Conversations that are remembered; beyond it the longest silent one is forgotten."""


def conversation(contest: Contest, headers: Mapping[str, str], request: LlmRequest) -> bytes | None:
    """A digest that the turns of one conversation share under one decision; None when nothing tells them apart."""
    return _digest(contest.told, contest.decision, headers, request)


def whole_conversation(told: Mapping[str, str], headers: Mapping[str, str], request: LlmRequest) -> bytes | None:
    """The same whatever is decided; `told` names the recipe."""
    return _digest(told, "", headers, request)


def _digest(told: Mapping[str, str], decision: str, headers: Mapping[str, str], request: LlmRequest) -> bytes | None:
    """A session header where the client sends one, else the first words of the user, which every later turn repeats."""
    said = next((f"{name}:{headers[name]}" for name in SESSION_HEADERS if headers.get(name)), None)
    if said is None:
        first = next((words for turn in request.turns if turn.role == "user" and (words := own_words(turn.text))), None)
        if first is None:
            return None
        said = f":{first}"
    digest = hashlib.blake2b(digest_size=16)
    for part in (told.get("recipe", ""), decision, request.format, said):
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    return digest.digest()


class Affinity:
    """The models of conversations. `clock` gives monotonic seconds. Must be used from one event loop."""

    def __init__(self, clock: Callable[[], float], *, kept_s: float = KEPT_S, most: int = MOST) -> None:
        self._clock = clock
        self._kept_s = kept_s
        self._most = most
        self._models: OrderedDict[bytes, tuple[str, float]] = OrderedDict()

    def of(self, key: bytes, refs: Sequence[ModelRef]) -> ModelRef | None:
        """The conversation's model, if it is remembered and still a candidate."""
        model, until = self._models.get(key, ("", 0.0))
        if until <= self._clock():
            self._models.pop(key, None)
            return None
        return next((ref for ref in refs if ref.model == model), None)

    def keep(self, key: bytes, model: str) -> None:
        """Remember the model from this turn on."""
        self._models[key] = (model, self._clock() + self._kept_s)
        self._models.move_to_end(key)
        if len(self._models) > self._most:
            self._models.popitem(last=False)

    def __len__(self) -> int:
        return len(self._models)
