"""The routing view: how much of a long text a routing question reads.

A text within the view is read as it came. A longer one keeps its head and its tail around a line that says how much was
left out; the tail gets the larger share by default because the request usually closes the turn. Only what the decision
model reads is cut, never what goes to the backend.

Sources: "Long inputs" (bounded view), `reference.md` 1.4.
"""

from __future__ import annotations

from router.config.sizes import BYTES_PER_TOKEN, RoutingView
from router.scan.text import joined, utf8_length

_LONGEST_CLUSTER = 16


def routing_view(text: str, view: RoutingView) -> str:
    """The text itself when it fits `view.max_bytes` of UTF-8, else its head, a marker line and its tail within them.

    Code points stay whole, and so do most user-perceived characters: a cut is not placed inside a run of combining
    marks, a joined emoji, or a CR LF pair.
    """
    if len(text) * 4 <= view.max_bytes:
        return text
    total = utf8_length(text)
    if total <= view.max_bytes:
        return text
    room = view.max_bytes - len(_marker(total))
    if room <= 0:
        return _tail(text, view.max_bytes)
    head = _head(text, int(room * view.head_share))
    tail = _tail(text, room - int(room * view.head_share))
    omitted = total - utf8_length(head) - utf8_length(tail)
    return head + _marker(omitted) + tail


def _marker(omitted_bytes: int) -> str:
    return f"\n[... {-(-omitted_bytes // BYTES_PER_TOKEN)} tokens omitted ...]\n"


def _head(text: str, budget: int) -> str:
    """The longest start of at most `budget` bytes. Only that many code points are ever encoded."""
    data = text[:budget].encode("utf-8", "surrogatepass")
    end = min(budget, len(data))
    while 0 < end < len(data) and _continues(data[end]):
        end -= 1
    cut = len(data[:end].decode("utf-8", "surrogatepass"))
    for place in range(cut, max(cut - _LONGEST_CLUSTER, 0), -1):
        if not joined(text, place):
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
        if not joined(text, place):
            return text[place:]
    return text[cut:]


def _continues(byte: int) -> bool:
    return byte & 0xC0 == 0x80
