"""How an input is cut into windows, and in which order they are read.

The first and the last window have the configured size exactly. What lies between is tiled, neighbours sharing at least
the configured overlap; where 256 windows would not do, the middle windows grow up to the largest that the model takes.
A cut falls between characters, and moves back to white space where that is near, which widens the overlap.

The order is tail, head, then the middle by halves. Where a round starts differs with every request, so the round that a
deadline cuts short leaves other windows unread each time. Of an input that 256 of the largest windows cannot hold, the
ones to read are spread evenly from a random start.

Sources: "Long inputs" (Guard rules read the whole input), `rulings.md` 11, 12d.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from router.config.sizes import ScanWindow
from router.scan.text import Place, Text

MOST_WINDOWS: Final = 256
"""Windows of one input, those of its normalised twin included. What is read a second time is not counted."""

_SLACK: Final = 64

RandomBelow = Callable[[int], int]
"""A random number from 0 to below its argument, from a source that nobody outside can predict."""


class Window(NamedTuple):
    """A stretch of an input."""

    start: Place
    end: Place

    @property
    def size(self) -> int:
        """Its length in bytes."""
        return self.end.byte - self.start.byte


TwinCount = Callable[[Window, int], int]
"""How many windows of at most so many bytes the normalised twin of a stretch takes."""


@dataclass(frozen=True, slots=True)
class Cover:
    """The windows of an input from its start to its end, and the numbers of those to read in visiting order.

    `size` is that of the middle windows, in bytes; `order` leaves out what there is no room for.
    """

    windows: tuple[Window, ...]
    order: tuple[int, ...]
    size: int


def no_twins(window: Window, size: int) -> int:
    """Of a text that is its own twin."""
    del window, size
    return 0


def cover(text: Text, sizes: ScanWindow, randbelow: RandomBelow, twins: TwinCount = no_twins) -> Cover:
    """Plan the windows of an input."""
    whole = Window(Place(0, 0), text.end)
    if whole.size <= sizes.size:
        return Cover((whole,), (0,), sizes.size)
    head = Window(Place(0, 0), text.floor(sizes.size))
    tail = Window(text.ceil(text.bytes - sizes.size), text.end)
    lo, hi = head.end.byte - sizes.overlap, tail.start.byte + sizes.overlap
    if head.end.byte - tail.start.byte >= sizes.overlap:
        return Cover((head, tail), tuple(visiting_order(2, randbelow)), sizes.size)

    def planned(size: int, slack: int) -> list[Window]:
        start = text.better_cut(text.floor(lo), slack).byte
        return [head, *tile(text, start, hi, size, sizes.overlap, slack), tail]

    def cost(windows: Sequence[Window], size: int) -> int:
        return len(windows) + sum(twins(window, size) for window in windows)

    # What a full set of middle windows must hold each; without twins a little more for cuts that move always does.
    share = -(-(hi - lo - sizes.overlap) // (MOST_WINDOWS - 2)) + sizes.overlap
    size = sizes.size
    if share > size or cost(planned(size, _slack(size)), size) > MOST_WINDOWS:
        size = min(max(share + _SLACK + 6, size), sizes.max_size)
        if size < sizes.max_size and cost(planned(size, _slack(size)), size) > MOST_WINDOWS:
            size = _smallest(size, sizes.max_size, lambda at: cost(planned(at, _slack(at)), at) <= MOST_WINDOWS)
    windows = planned(size, _slack(size))
    if cost(windows, size) > MOST_WINDOWS:
        windows = planned(size, 0)
    if cost(windows, size) <= MOST_WINDOWS:
        return Cover(tuple(windows), tuple(visiting_order(len(windows), randbelow)), size)
    costs = [1 + twins(window, size) for window in windows]
    kept = _spread(costs, randbelow)
    order = tuple(kept[place] for place in visiting_order(len(kept), randbelow))
    return Cover(tuple(windows), order, size)


def tile(text: Text, lo: int, hi: int, size: int, overlap: int, slack: int) -> list[Window]:
    """Windows of `size` bytes over the bytes from `lo` to `hi`, the last one shorter; neighbours share `overlap`."""
    windows: list[Window] = []
    start, end = text.floor(lo), text.ceil(hi)
    while end.byte - start.byte > size:
        window = Window(start, text.floor(start.byte + size))
        windows.append(window)
        following = text.better_cut(text.floor(window.end.byte - overlap), slack)
        start = following if following.byte > start.byte else text.at_point(start.point + 1)
    windows.append(Window(start, end))
    return windows


def reread(text: Text, stretch: Window, sizes: ScanWindow) -> list[Window]:
    """Windows of the configured size over a stretch that was read as one."""
    return tile(text, stretch.start.byte, stretch.end.byte, sizes.size, sizes.overlap, _slack(sizes.size))


def last_half(text: Text, tail: Window) -> Window:
    """The later half of the tail."""
    return Window(text.ceil(tail.end.byte - tail.size // 2), tail.end)


def visiting_order(count: int, randbelow: RandomBelow) -> list[int]:
    """The numbers of `count` windows: the last, the first, then the middle one, the quarters, the eighths, and so on.

    Each round starts at a random one of its windows and goes round.
    """
    last = count - 1
    order = [last, 0] if count > 1 else [0]
    seen = set(order)
    parts = 2
    while len(order) < count:
        places = dict.fromkeys((2 * part * last + parts) // (2 * parts) for part in range(1, parts, 2))
        found = [place for place in places if place not in seen]
        if found:
            first = randbelow(len(found))
            order += found[first:] + found[:first]
            seen.update(found)
        parts *= 2
    return order


def _smallest(lo: int, hi: int, fits: Callable[[int], bool]) -> int:
    """The smallest size above `lo` and up to `hi` that fits; `hi` if none does."""
    while hi - lo > max(lo // 256, 1):
        middle = (lo + hi) // 2
        lo, hi = (lo, middle) if fits(middle) else (middle, hi)
    return hi


def _slack(size: int) -> int:
    return min(_SLACK, size // 32)


def _spread(costs: Sequence[int], randbelow: RandomBelow) -> list[int]:
    """The numbers of windows that there is room for: both ends, and middle ones, evenly, from a random start."""
    last, middle = len(costs) - 1, len(costs) - 2
    phase = randbelow(middle)

    def kept(count: int) -> list[int]:
        inner = (i for i in range(middle) if (i * count + phase) % middle < count)
        return [0, *(1 + i for i in inner), last]

    count = min(middle, MOST_WINDOWS - 2)
    while count > 0 and sum(costs[i] for i in kept(count)) > MOST_WINDOWS:
        count -= 1
    return kept(count)
