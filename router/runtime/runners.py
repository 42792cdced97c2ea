"""One batch through a session: fed from numpy on a CPU, through IO binding and in bucketed shapes on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy.typing as npt

from .keeping import Keeping

if TYPE_CHECKING:
    import onnxruntime

Arrays = Mapping[str, npt.NDArray[Any]]

_WIDTHS = (16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)


class Runner(Protocol):
    """How batches of one session are run. `width` and `count` say how large a batch is to be made."""

    def width(self, tokens: int) -> int:
        """How wide rows are padded when the longest has this many tokens."""
        ...

    def count(self, rows: int) -> int:
        """How many rows a batch of this many is filled up to."""
        ...

    def __call__(self, wanted: Sequence[str], feed: Arrays) -> list[npt.NDArray[Any]]:
        """The outputs named, in order; no other is computed or copied."""
        ...

    def give_back(self, wanted: Sequence[str], feed: Arrays) -> None:
        """Give back the memory that long batches left, if any did, by running a short one once more."""
        ...


class CpuRunner:
    """Batches in their own shape: padding costs on a CPU, new shapes do not."""

    def __init__(
        self, runtime: Any, session: onnxruntime.InferenceSession, keeping: Callable[[], Keeping] = Keeping
    ) -> None:
        self._session = session
        self._keeping = keeping()
        self._shrinking = runtime.RunOptions()
        self._shrinking.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")

    def width(self, tokens: int) -> int:
        """As it is."""
        return tokens

    def count(self, rows: int) -> int:
        """As it is."""
        return rows

    def __call__(self, wanted: Sequence[str], feed: Arrays) -> list[npt.NDArray[Any]]:
        """Run."""
        tokens = next(iter(feed.values())).size
        return self._ran(wanted, feed, gives_back=self._keeping.due(tokens))

    def give_back(self, wanted: Sequence[str], feed: Arrays) -> None:
        """Run it if there is something to give back."""
        if self._keeping.owes:
            self._ran(wanted, feed, gives_back=True)

    def _ran(self, wanted: Sequence[str], feed: Arrays, *, gives_back: bool) -> list[npt.NDArray[Any]]:
        gave_back = False
        try:
            found: list[npt.NDArray[Any]] = self._session.run(
                list(wanted), dict(feed), self._shrinking if gives_back else None
            )
            gave_back = gives_back
        finally:
            self._keeping.ran(next(iter(feed.values())).size, gave_back=gave_back)
        return found


class BoundRunner:
    """Batches in few shapes, so that kernels are chosen and memory is planned once for each.

    Inputs are put on the device and outputs fetched from it in one place each. `device` is what ONNX Runtime calls it
    (`cuda`; tests bind to `cpu`).
    """

    def __init__(
        self, runtime: Any, session: onnxruntime.InferenceSession, device: str, ordinal: int, longest: int
    ) -> None:
        """`longest` is the graph's limit in tokens: no row is padded beyond it."""
        self._runtime = runtime
        self._session = session
        self._device = device
        self._ordinal = ordinal
        self._longest = longest

    def width(self, tokens: int) -> int:
        """The next of 16, 32, 64, 96, 128, 192, ... 1024, then of whole multiples of 512: at most half is padding."""
        step = next((width for width in _WIDTHS if width >= tokens), -(-tokens // 512) * 512)
        return max(tokens, min(step, self._longest))

    def count(self, rows: int) -> int:
        """The next power of two."""
        return 1 << (rows - 1).bit_length()

    def __call__(self, wanted: Sequence[str], feed: Arrays) -> list[npt.NDArray[Any]]:
        """Run, and wait for the outputs."""
        binding = self._session.io_binding()
        for name, array in feed.items():
            value = self._runtime.OrtValue.ortvalue_from_numpy(array, self._device, self._ordinal)
            binding.bind_ortvalue_input(name, value)
        for name in wanted:
            binding.bind_output(name, self._device, self._ordinal)
        self._session.run_with_iobinding(binding)
        found: list[npt.NDArray[Any]] = binding.copy_outputs_to_cpu()
        return found

    def give_back(self, wanted: Sequence[str], feed: Arrays) -> None:
        """Nothing: few shapes make few blocks, and `gpu_mem_limit` bounds them."""
