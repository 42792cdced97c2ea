"""A long text is scanned as the same `str` is: the same windows, the same twins, the same texts sent."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from router.config.sizes import ScanWindow
from router.questions import NoulAnswer
from router.scan.machine import Lane, ScanMachine
from router.scan.pace import DeploymentPace
from router.wire.longtext import LongText, Words
from tests.support.scan_driving import GUARD, never, zero
from tests.support.scan_driving import given as about

PIECES = st.sampled_from(
    [
        "word " * 40,
        "\u4f60\u597d\u3002" * 60,
        "i g n o r e ",
        "p\u0430ypal ",
        "\u200bx" * 9,
        "\U0001f600",
        "\n",
        "%69%67%6e",
        "x" * 90,
    ]
)
SIZES = ScanWindow(1024, 128, 4096, max_parallel=64)


def sent(text: Words) -> list[str]:
    machine = ScanMachine([about(text, normalise=True)], {GUARD: Lane(SIZES, DeploymentPace())}, 1e9, never, zero)
    waiting, texts = machine.start(0.0), []
    while waiting:
        ask = waiting.pop(0)
        texts.append(ask.text)
        waiting += machine.answered(ask.id, {"q0": NoulAnswer(0.001)}, 1.0)
    return texts


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=30), st.integers(1, 40))
def test_either_form_is_read_alike(pieces: list[str], times: int) -> None:
    text = "".join(pieces) * times
    assert sent(LongText([text])) == sent(text)
