from __future__ import annotations

from typing import Any

import numpy as np

from router.runtime.batch import Layout
from router.runtime.card import Graph, Tensor
from router.runtime.rows import Row

GRAPH = Graph(
    "encoder",
    "model.onnx",
    (),
    (
        Tensor("pooled", "tensor(float)", ("batch", 2)),
        Tensor("states", "tensor(float)", ("batch", "seq", 2)),
        Tensor("logits", "tensor(float)|tensor(float16)", ("batch", "options")),
        Tensor("scores", "tensor(float)", (3, "batch", "words")),
    ),
)
INPUTS = {
    "input_ids": "tensor(int32)",
    "attention_mask": "tensor(int64)",
    "token_type_ids": "tensor(int64)",
    "places": "tensor(int64)",
    "real": "tensor(bool)",
    "kind": "tensor(int64)",
    "words_mask": "tensor(int64)",
}


def row(ids: list[int], places: list[int], kind: int, *outputs: str) -> Row:
    extra = {
        "places": np.array(places),
        "real": np.ones(len(places), np.bool_),
        "kind": np.array(kind),
        "words_mask": np.arange(1, len(ids) + 1),
    }
    return Row(np.array(ids), outputs, extra, {"options": len(places), "words": len(ids) - 1})


ROWS = [row([5, 6], [0], 1, "pooled", "logits"), row([7, 8, 9], [0, 2, 1], 2, "states", "logits", "scores")]


def test_inputs_are_padded_to_the_longest_of_each_side() -> None:
    feed = Layout(GRAPH, 4, INPUTS).feed(ROWS)
    assert feed["input_ids"].tolist() == [[5, 6, 4], [7, 8, 9]]
    assert feed["input_ids"].dtype == np.int32
    assert feed["attention_mask"].tolist() == [[1, 1, 0], [1, 1, 1]]
    assert feed["token_type_ids"].tolist() == [[0, 0, 0], [0, 0, 0]]
    assert feed["places"].tolist() == [[0, 0, 0], [0, 2, 1]]
    assert feed["real"].tolist() == [[True, False, False], [True, True, True]]
    assert feed["kind"].tolist() == [1, 2]
    assert feed["words_mask"].tolist() == [[1, 2, 0], [1, 2, 3]]


def test_outputs_come_back_without_padding() -> None:
    values: dict[str, np.ndarray[Any, np.dtype[Any]]] = {
        "pooled": np.array([[1.0, 2], [3, 4]], np.float32),
        "states": np.arange(12, dtype=np.float32).reshape(2, 3, 2),
        "logits": np.array([[1, 9, 9], [1, 2, 3]], np.float16),
        "scores": np.arange(18, dtype=np.float32).reshape(3, 2, 3),
    }
    first, second = Layout(GRAPH, 4, INPUTS).split(ROWS, values)
    assert set(first) == {"pooled", "logits"}
    assert first["logits"].tolist() == [1.0]
    assert first["logits"].dtype == np.float32
    assert second["states"].shape == (3, 2)
    assert second["logits"].tolist() == [1.0, 2.0, 3.0]
    assert second["scores"].shape == (3, 2)
    assert second["scores"][1].tolist() == [9.0, 10.0]


def test_sides_can_be_named_anew() -> None:
    layout = Layout(GRAPH, 4, INPUTS)
    layout.lay_out("scores", ("batch", "words", 3))
    (only,) = layout.split(
        [Row(np.array([1, 2, 3]), ("scores",), {}, {"words": 2})], {"scores": np.zeros((1, 4, 3), np.float32)}
    )
    assert only["scores"].shape == (2, 3)
