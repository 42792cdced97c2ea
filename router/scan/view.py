"""The routing view: how much of a long text a routing question reads.

A text within the view is read as it came. A longer one keeps its head and its tail around a line that says how much was
left out; the tail gets the larger share by default because the request usually closes the turn. Only what the decision
model reads is cut, never what goes to the backend.

Sources: "Long inputs" (bounded view), `reference.md` 1.4.
"""

from __future__ import annotations

import unicodedata

from router.config.plan import RoutingView

BYTES_PER_TOKEN = 4
"""Sizes are configured in tokens and applied in UTF-8 bytes, four to a token."""

QUESTION_TOKENS = 1024
"""What is kept free for the question when a view is sized to a model, which may spend a token on every byte."""

_SMALLEST_VIEW = 256
_LONGEST_CLUSTER = 16
_ZERO_WIDTH_JOINER = "\u200d"
_SKIN_TONES = range(0x1F3FB, 0x1F400)


def view_for(tokens: int, head_share: float, readable_tokens: int | None) -> RoutingView:
    """The view of a deployment: `tokens` as configured, held to what its model reads (`Capabilities.readable_tokens`).

    A model of hardly more tokens than the question is given is left half of them rather than nothing.
    """
    size = BYTES_PER_TOKEN * tokens
    if readable_tokens is not None:
        size = min(size, max(readable_tokens - QUESTION_TOKENS, min(_SMALLEST_VIEW, readable_tokens // 2)))
    return RoutingView(max_bytes=size, head_share=head_share)


def routing_view(text: str, view: RoutingView) -> str:
    """The text itself when it fits `view.max_bytes` of UTF-8, else its head, a marker line and its tail within them.

    Code points stay whole, and so do most user-perceived characters: a cut is not placed inside a run of combining
    marks, a joined emoji, or a CR LF pair.
    """
    if len(text) * 4 <= view.max_bytes:
        return text
    total = _utf8_length(text)
    if total <= view.max_bytes:
        return text
    room = view.max_bytes - len(_marker(total))
    if room <= 0:
        return _tail(text, view.max_bytes)
    head = _head(text, int(room * view.head_share))
    tail = _tail(text, room - int(room * view.head_share))
    omitted = total - _utf8_length(head) - _utf8_length(tail)
    return head + _marker(omitted) + tail


def _marker(omitted_bytes: int) -> str:
    return f"\n[... {-(-omitted_bytes // BYTES_PER_TOKEN)} tokens omitted ...]\n"


def _utf8_length(text: str) -> int:
    # JSON can spell half a surrogate pair, which plain UTF-8 cannot: it counts as the three bytes it would take.
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _head(text: str, budget: int) -> str:
    """The longest start of at most `budget` bytes. Only that many code points are ever encoded."""
    data = text[:budget].encode("utf-8", "surrogatepass")
    end = min(budget, len(data))
    while 0 < end < len(data) and _continues(data[end]):
        end -= 1
    cut = len(data[:end].decode("utf-8", "surrogatepass"))
    for place in range(cut, max(cut - _LONGEST_CLUSTER, 0), -1):
        if not _joined(text, place):
            return text[:place]
    return text[:cut]


def _tail(text: str, budget: int) -> str:
    """The longest end of at most `budget` bytes."""
    if budget <= 0:
        return ""
    data = text[-budget:].encode("utf-8", "surrogatepass")
    start = max(len(data) - budget, 0)
    while start < len(data) and _continues(data[start]):
        start += 1
    cut = len(text) - len(data[start:].decode("utf-8", "surrogatepass"))
    for place in range(cut, min(cut + _LONGEST_CLUSTER, len(text))):
        if not _joined(text, place):
            return text[place:]
    return text[cut:]


def _continues(byte: int) -> bool:
    return byte & 0xC0 == 0x80


def _joined(text: str, place: int) -> bool:
    """Whether a reader would see the code points on both sides of `place` as one character."""
    if not 0 < place < len(text):
        return False
    left, right = text[place - 1], text[place]
    if right.isascii():
        return left == "\r" and right == "\n"
    return (
        _ZERO_WIDTH_JOINER in (left, right) or unicodedata.category(right).startswith("M") or ord(right) in _SKIN_TONES
    )
