"""What a scan of megabytes holds: offsets, not copies."""

from __future__ import annotations

import tracemalloc

import pytest

from router.config.sizes import ScanWindow, scan_window_for
from router.questions import NoulAnswer
from router.scan.machine import Lane, ScanMachine
from router.scan.pace import DeploymentPace
from tests.support.scan_driving import GUARD, given, never, zero

MEGABYTE = 1_000_000
TEXTS = {
    "prose": "some words of prose " * (MEGABYTE // 20),
    "Chinese": "我的密码是你好。今天天气很好。" * (MEGABYTE // 45),
    "changed all over": "w\u200bo\u200br\u200bd\u200b " * (MEGABYTE // 17),
}


def peak_of(text: str, sizes: ScanWindow) -> tuple[int, int]:
    """Bytes allocated at most while a whole scan runs, and how many windows were sent."""
    tracemalloc.start()
    machine = ScanMachine([given(text, normalise=True)], {GUARD: Lane(sizes, DeploymentPace())}, 1e9, never, zero)
    waiting = machine.start(0.0)
    sent = 0
    while waiting:
        sent += 1
        waiting += machine.answered(waiting.pop(0).id, {"q0": NoulAnswer(0.001)}, float(sent))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert machine.ended is not None
    assert str(machine.outcomes["attack"].coverage) == "full"
    return peak, sent


@pytest.mark.parametrize("kind", TEXTS)
def test_a_scan_holds_at_most_three_times_its_input(kind: str) -> None:
    text = TEXTS[kind]
    size = len(text.encode())
    peak, sent = peak_of(text, scan_window_for(None, None, None, 32_768))
    assert sent > 30
    assert size + peak <= 3 * size
    if kind == "prose":
        assert peak < size // 2
