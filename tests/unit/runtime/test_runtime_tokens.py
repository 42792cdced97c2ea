"""One tokenizer for the worker, the planner and whoever else: it keeps no state that a call could find changed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from router.runtime.artifact import open_artifact
from router.runtime.tokens import Tokenizer


def test_threads_with_different_limits_do_not_disturb_each_other(tiny_directory: Path) -> None:
    tokenizer = Tokenizer(open_artifact(str(tiny_directory)))
    calls = [("math law code ab cd " * (1 + number % 7), 1 + number % 11, number % 2 == 0) for number in range(64)]

    def encode(call: tuple[str, int, bool]) -> Any:
        text, most, placed = call
        encoded = tokenizer.encode(text, most, placed=placed)
        words = tokenizer.words(text.split(), most)
        return encoded.ids.tolist(), list(encoded.offsets), encoded.complete, words.ids.tolist(), words.starts.tolist()

    alone = [encode(call) for call in calls]
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(encode, calls * 10)) == alone * 10
