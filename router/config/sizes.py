"""How much text a decision model is given at a time: routing views and scan windows, in bytes.

Sizes are written in tokens and applied in bytes of UTF-8, so that a text is measured without a tokenizer and local and
remote models behave alike.

Sources: "Long inputs" (Views and windows are sized in bytes; the table of settings), `rulings.md` 2, 12a.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

BYTES_PER_TOKEN: Final = 4
"""A written token is this many bytes, about what a token of prose takes."""

QUESTION_TOKENS: Final = 1024
"""What is kept free for the question when text is sized to a model, which may spend a token on every byte."""

VIEW_TOKENS: Final = 8192
REMOTE_VIEW_TOKENS: Final = 4096
HEAD_SHARE: Final = 0.25
WINDOW_TOKENS: Final = 8192
REMOTE_WINDOW_TOKENS: Final = 4096
OVERLAP_TOKENS: Final = 512
REMOTE_OVERLAP_TOKENS: Final = 256
MAX_PARALLEL: Final = 4
REREAD_MARGIN: Final = 3.0


@dataclass(frozen=True, slots=True)
class RoutingView:
    """Bounds of the text a routing question reads: bytes in all, and the head's share of them (0..1)."""

    max_bytes: int
    head_share: float


@dataclass(frozen=True, slots=True)
class ScanWindow:
    """How a deployment reads a whole input in windows.

    `size`, `overlap` and `max_size` are bytes: of the windows as configured, of what neighbours share, and of the
    largest that the model takes. `max_parallel` bounds the windows of one request in flight. `reread_margin` is in
    log-odds below a rule's threshold; 0 reads nothing again.
    """

    size: int
    overlap: int
    max_size: int
    max_parallel: int = MAX_PARALLEL
    reread_margin: float = REREAD_MARGIN


def room_for_text(readable_tokens: int | None) -> int | None:
    """The most bytes of text that a model of this length is ever given; None when its length is not known.

    A model so short that the room for the question would eat everything gives half of itself to the text.
    """
    if readable_tokens is None:
        return None
    return max(readable_tokens - QUESTION_TOKENS, readable_tokens // 2)


def view_for(
    max_tokens: int | None, head_share: float, readable_tokens: int | None, *, remote: bool = False
) -> RoutingView:
    """The routing view of a deployment. `max_tokens` as written, or None; `readable_tokens` as its card says."""
    default = REMOTE_VIEW_TOKENS if remote else VIEW_TOKENS
    return RoutingView(_capped(default if max_tokens is None else max_tokens, readable_tokens), head_share)


def scan_window_for(
    tokens: int | None,
    overlap: int | None,
    max_tokens: int | None,
    readable_tokens: int | None,
    *,
    max_parallel: int = MAX_PARALLEL,
    reread_margin: float = REREAD_MARGIN,
    remote: bool = False,
) -> ScanWindow:
    """The windows of a deployment. Settings as written, or None; their ranges have been checked.

    The largest window is what the model takes. Where nobody has told its length it is the configured size, because a
    window that overruns a model is worse than one that stays unread. An overlap that is not less than half of a window
    that the model cut short keeps its share of the window.
    """
    tokens = (REMOTE_WINDOW_TOKENS if remote else WINDOW_TOKENS) if tokens is None else tokens
    overlap = min(REMOTE_OVERLAP_TOKENS if remote else OVERLAP_TOKENS, tokens // 4) if overlap is None else overlap
    size = _capped(tokens, readable_tokens)
    shared = BYTES_PER_TOKEN * overlap
    if 2 * shared >= size:
        shared = size * overlap // tokens
    room = room_for_text(readable_tokens)
    largest = size if room is None else room
    if max_tokens is not None:
        largest = _capped(max_tokens, readable_tokens)
    return ScanWindow(size, shared, max(size, largest), max_parallel, reread_margin)


@dataclass(frozen=True, slots=True)
class WrittenSizes:
    """What a deployment says about sizes, in tokens, None where it says nothing; its model's length may come later.

    `remote` is a model behind an API of somebody else's, which has defaults of its own.
    """

    view_tokens: int | None = None
    head_share: float = HEAD_SHARE
    tokens: int | None = None
    overlap: int | None = None
    max_tokens: int | None = None
    max_parallel: int = MAX_PARALLEL
    reread_margin: float = REREAD_MARGIN
    remote: bool = False

    @property
    def window_tokens(self) -> int:
        """The size of a window, written or not, before any model cuts it short."""
        return self.tokens or (REMOTE_WINDOW_TOKENS if self.remote else WINDOW_TOKENS)

    def view(self, readable_tokens: int | None) -> RoutingView:
        """The routing view for a model of this length (None: not known)."""
        return view_for(self.view_tokens, self.head_share, readable_tokens, remote=self.remote)

    def scan(self, readable_tokens: int | None) -> ScanWindow:
        """The windows for a model of this length (None: not known)."""
        return scan_window_for(
            self.tokens,
            self.overlap,
            self.max_tokens,
            readable_tokens,
            max_parallel=self.max_parallel,
            reread_margin=self.reread_margin,
            remote=self.remote,
        )


def _capped(tokens: int, readable_tokens: int | None) -> int:
    room = room_for_text(readable_tokens)
    size = BYTES_PER_TOKEN * tokens
    return size if room is None else min(size, room)


DEFAULT_SCAN: Final = WrittenSizes().scan(None)
"""How a model is read whose length nobody knows, where nothing is written."""
