"""How much may wait, and how large a batch may be.

On a CPU a batch of some 512 tokens already runs at full speed; beyond about a thousand, its activations leave the
caches and it runs slower than its rows alone would. Small batches also keep memory flat and let short work in between.
A GPU needs large batches to be busy at all. (Measured: docs/benchmarks.md, "runtime".)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

CPU_BATCH_ROWS = 32
CPU_BATCH_TOKENS = 512
CPU_PASS_TOKENS = 8
GPU_BATCH_ROWS = 64
GPU_BATCH_TOKENS = 65_536
GPU_PASS_TOKENS = 65_536


@dataclass(frozen=True, slots=True)
class Bounds:
    """Sizes of queue and batches. `slack` bounds padding: how much shorter than the longest a row of a batch may be.

    `batch_tokens` counts padding too; a single row may exceed it. `pass_tokens` is what another pass through the
    weights costs, in tokens of padding: with the embedded model on one core 2 ms, and 0.24 ms a token. `window_s` is
    how long an idle worker waits for requests that are being prepared.
    """

    requests: int = 256
    queued_tokens: int = 4_194_304
    batch_rows: int = CPU_BATCH_ROWS
    batch_tokens: int = CPU_BATCH_TOKENS
    pass_tokens: int = CPU_PASS_TOKENS
    slack: float = 0.25
    window_s: float = 0.002

    def rows_of(self, tokens: int) -> int:
        """How many rows of this length make a full batch."""
        return max(1, min(self.batch_rows, self.batch_tokens // max(1, tokens)))


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a command line says about bounds; None leaves it to the device."""

    requests: int | None = None
    queued_tokens: int | None = None
    batch_tokens: int | None = None
    window_s: float | None = None

    def on(self, device: str) -> Bounds:
        """The bounds on a device (`cpu`, `cuda:N`)."""
        gpu = device != "cpu"
        bounds = Bounds(
            batch_rows=GPU_BATCH_ROWS if gpu else CPU_BATCH_ROWS,
            batch_tokens=GPU_BATCH_TOKENS if gpu else CPU_BATCH_TOKENS,
            pass_tokens=GPU_PASS_TOKENS if gpu else CPU_PASS_TOKENS,
        )
        written = {name: getattr(self, name) for name in self.__slots__}
        return replace(bounds, **{name: value for name, value in written.items() if value is not None})
