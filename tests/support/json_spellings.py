"""JSON in every spelling: documents of any shape, and a writer that spells them with any white space and escapes."""

from __future__ import annotations

import json
import random
from typing import Any

from hypothesis import strategies as st

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["model", '"model":', "mod\\u0065l", "}", "]", "\\", '\\"', "messages", "\x7f", "😀"]
)
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
documents = st.dictionaries(texts, values, max_size=5)


class Writer:
    """Writes JSON in any of its spellings: white space anywhere, any character escaped."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def space(self) -> str:
        return "".join(self.random.choices(" \t\n\r", k=self.random.choice([0, 0, 0, 1, 3])))

    def string(self, text: str) -> str:
        return '"' + "".join(self.character(c) for c in text) + '"'

    def character(self, c: str) -> str:
        escaped = "".join(f"\\u{unit:04x}" for unit in memoryview(c.encode("utf-16-le")).cast("H"))
        if c in '"\\' or ord(c) < 0x20:
            return self.random.choice([json.dumps(c)[1:-1], escaped])
        return self.random.choice([c, c, c, escaped])

    def value(self, value: Any) -> str:
        if isinstance(value, str):
            return self.string(value)
        if isinstance(value, list):
            inner = [self.space() + self.value(item) + self.space() for item in value]
            return "[" + (",".join(inner) or self.space()) + "]"
        if isinstance(value, dict):
            return self.object(list(value.items()))
        return json.dumps(value)

    def pair(self, key: str, written: str) -> str:
        return self.space() + self.string(key) + self.space() + ":" + self.space() + written + self.space()

    def object(self, pairs: list[tuple[str, Any]]) -> str:
        return "{" + (",".join(self.pair(key, self.value(value)) for key, value in pairs) or self.space()) + "}"
