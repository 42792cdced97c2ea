"""What a sample backend says, before any wire format: the words, how they are paced, and rough token counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

BYTES_PER_TOKEN = 4


class BadRequest(Exception):
    """The body is not a request of its format; the message says what is wrong and never quotes the body."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request as far as a sample backend reads it. `include_usage` concerns Chat streams only."""

    model: str
    stream: bool
    include_usage: bool
    last_user_text: str
    size: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer; `pieces` are the parts that a stream sends one by one."""

    id: str
    created: int
    model: str
    pieces: tuple[str, ...]
    input_tokens: int

    @property
    def text(self) -> str:
        """The answer in one piece."""
        return "".join(self.pieces)

    @property
    def output_tokens(self) -> int:
        """One token a piece: near enough for a sample."""
        return len(self.pieces)


def read_ask(body: bytes, turns_key: str) -> Ask:
    """Read a JSON body whose conversation is under `turns_key`; raises BadRequest."""
    try:
        document = json.loads(body)
    except ValueError:
        raise BadRequest("the body is not JSON") from None
    if not isinstance(document, dict):
        raise BadRequest("the body is not a JSON object")
    model, turns = document.get("model"), document.get(turns_key)
    if not isinstance(model, str) or not model:
        raise BadRequest("`model` must be a string")
    if not turns:
        raise BadRequest(f"`{turns_key}` must not be empty")
    options = document.get("stream_options")
    return Ask(
        model=model,
        stream=document.get("stream") is True,
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        last_user_text=_last_user_text(turns),
        size=len(body),
    )


def make_answer(ask: Ask, *, id: str, created: int, echo: bool, pieces: int | None) -> Answer:
    """The sample's answer: who speaks, the user's last text if `echo`, padded with filler to `pieces` if given."""
    words = f"This is {ask.model} answering."
    if echo:
        words += f" You said: {ask.last_user_text}"
    parts = [word if first else " " + word for first, word in _enumerate_first(words.split(" "))]
    if pieces is not None:
        parts = parts[:pieces] + [" word"] * (pieces - len(parts))
    return Answer(id, created, ask.model, tuple(parts), input_tokens=max(1, ask.size // BYTES_PER_TOKEN))


def _enumerate_first(words: list[str]) -> Iterator[tuple[bool, str]]:
    return ((index == 0, word) for index, word in enumerate(words))


def _last_user_text(turns: Any) -> str:
    """The text of the last user turn in any of the three formats; a bare string is one user turn."""
    if isinstance(turns, str):
        return turns
    if not isinstance(turns, list):
        raise BadRequest("the conversation must be text or a list")
    for turn in reversed(turns):
        if isinstance(turn, dict) and turn.get("role") == "user":
            return _content_text(turn.get("content"))
    return ""


def _content_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(str(part["text"]) for part in content if isinstance(part, dict) and "text" in part)
