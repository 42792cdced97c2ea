"""Tiny decision artifacts whose answers can be worked out by hand, built in milliseconds.

The encoder is a table: every known word is one axis. A text becomes the unit vector of the words it holds, so the
similarity of two texts is `shared / sqrt(n * m)` where n and m count their distinct known words; unknown words are
ignored. So a word of the state that is also an option's key wins, a noul whose instructions share a word with the state
is true (P > 0.9 up to a dozen known words in the state), a set selects the labels that occur, and a span marks them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

ALL_TYPES = ("noul", "choice", "score", "set", "span")
_WORDS = (
    "code math law health business finance science history weather travel music sports food art writing chat other "
    "billing refund invoice payment shipping delivery order account password login technical bug crash error support "
    "sales complaint praise urgent calm low medium high easy hard simple complex short long small "
    "large cheap fast slow strong weak positive negative neutral happy angry sad jailbreak attack "
    "secret person city date email phone python java sql regex integral proof contract court doctor medicine red "
    "green blue alpha beta gamma delta one two three four five translate summarize poem story tool search"
)
WORDS = tuple(_WORDS.split())
PAD, UNK, CLS, SEP = "[PAD]", "[UNK]", "[CLS]", "[SEP]"
SCALE_A, SCALE_B = 40.0, 0.2
SPAN_A, SPAN_B = 12.0, 0.5
TEMPERATURE = 0.05


def build_tiny_artifact(
    directory: Path,
    *,
    types: Collection[str] = ALL_TYPES,
    words: Iterable[str] = (),
    name: str = "tiny",
    presets: bool = False,
    graph_tokens: int = 64,
    max_input_tokens: int = 512,
    long: str = "window",
    card: Mapping[str, Any] | None = None,
) -> Path:
    """Write an artifact into `directory` (made if need be) and return it.

    `types` are the free question types it answers; `words` adds to the known words (one word each, lower case).
    `presets` adds `domains` (choice: "code" becomes "computer science", "math", "law", else "other") and `jailbreak`
    (noul: true when the state says "jailbreak"). `card` overrides top-level keys.
    """
    directory.mkdir(parents=True, exist_ok=True)
    known = list(dict.fromkeys([PAD, UNK, CLS, SEP, *WORDS, *(word.lower() for word in words)]))
    _tokenizer(known).save(str(directory / "tokenizer.json"))
    onnx.save(_encoder(known, presets), str(directory / "model.onnx"))
    content = _card(known, types, name, presets, graph_tokens, max_input_tokens, long) | dict(card or {})
    (directory / "decision.json").write_text(json.dumps(content, indent=1))
    seal(directory)
    return directory


def seal(directory: Path) -> None:
    """Write SHA256SUMS over everything in the directory: after a test has changed a file on purpose."""
    files = sorted(path for path in directory.iterdir() if path.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (directory / "SHA256SUMS").write_text("".join(lines))


def _tokenizer(known: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel({word: index for index, word in enumerate(known)}, unk_token=UNK))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens([PAD, UNK, CLS, SEP])
    # What real files carry and a runtime must switch off.
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=8)
    return tokenizer


def _encoder(known: list[str], presets: bool) -> onnx.ModelProto:
    """ids, mask -> pooled [batch, words] (unit), token_states [batch, seq, words] (one axis a word)."""
    size = len(known)
    table = np.eye(size, dtype=np.float32)
    table[:4] = 0
    constants = [
        numpy_helper.from_array(table, "table"),
        numpy_helper.from_array(np.array([2], np.int64), "last"),
        numpy_helper.from_array(np.array([1], np.int64), "sequence"),
        numpy_helper.from_array(np.array([1], np.int64), "width"),
        numpy_helper.from_array(np.array(1e-6, np.float32), "tiny"),
    ]
    nodes = [
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["mask3"]),
        helper.make_node("Gather", ["table", "input_ids"], ["looked"]),
        helper.make_node("Mul", ["looked", "mask3"], ["token_states"]),
        helper.make_node("ReduceMax", ["token_states", "sequence"], ["present"], keepdims=0),
        helper.make_node("ReduceL2", ["present", "width"], ["norm"], keepdims=1),
        helper.make_node("Max", ["norm", "tiny"], ["length"]),
        helper.make_node("Div", ["present", "length"], ["pooled"]),
    ]
    floats = TensorProto.FLOAT
    outputs = [
        helper.make_tensor_value_info("pooled", floats, ["batch", size]),
        helper.make_tensor_value_info("token_states", floats, ["batch", "seq", size]),
    ]
    if presets:
        weights = np.zeros((size, 6), np.float32)
        for column, word in enumerate(("code", "math", "law")):
            weights[known.index(word), column] = 8.0
        weights[known.index("jailbreak"), 5] = 8.0
        constants += [
            numpy_helper.from_array(weights, "weights"),
            numpy_helper.from_array(np.array([0, 0, 0, 4, 0, -4], np.float32), "bias"),
        ]
        nodes += [
            helper.make_node("MatMul", ["present", "weights"], ["heads"]),
            helper.make_node("Add", ["heads", "bias"], ["preset_logits"]),
        ]
        outputs.append(helper.make_tensor_value_info("preset_logits", floats, ["batch", 6]))
    graph = helper.make_graph(
        nodes,
        "tiny",
        [
            helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "seq"]),
            helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "seq"]),
        ],
        outputs,
        initializer=constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    return model


def _card(
    known: list[str], types: Collection[str], name: str, presets: bool, graph_tokens: int, most: int, long: str
) -> dict[str, Any]:
    def tensor(label: str, kind: str, shape: list[int | str]) -> dict[str, Any]:
        return {"name": label, "type": f"tensor({kind})", "shape": shape}

    size = len(known)
    outputs = [tensor("pooled", "float", ["batch", size]), tensor("token_states", "float", ["batch", "seq", size])]
    rules: dict[str, Any] = {
        "choice": {"temperature": TEMPERATURE},
        "score": {"temperature": TEMPERATURE},
        "noul": {"a": SCALE_A, "b": SCALE_B},
        "set": {"a": SCALE_A, "b": SCALE_B, "threshold": 0.5},
        "span": {"states": "token_states", "a": SPAN_A, "b": SPAN_B, "threshold": 0.5},
    }
    content: dict[str, Any] = {
        "format": "decision-onnx/1",
        "name": name,
        "version": "1",
        "licence": "Apache-2.0",
        "adapter": "two_tower",
        "question_types": [kind for kind in ALL_TYPES if kind in types],
        "limits": {"graph_tokens": graph_tokens, "max_input_tokens": most},
        "reading": {"state_once": True, "long": long, "window": {"tokens": graph_tokens // 2, "overlap": 4}},
        "tokens": {"pad": 0, "cls": 2, "sep": 3, "forbidden_in_text": [PAD, UNK, CLS, SEP]},
        "graphs": {
            "encoder": {
                "file": "model.onnx",
                "inputs": [
                    tensor("input_ids", "int64", ["batch", "seq"]),
                    tensor("attention_mask", "int64", ["batch", "seq"]),
                ],
                "outputs": outputs,
            }
        },
        "custom_questions": {"embedding": "pooled"} | {kind: rules[kind] for kind in ALL_TYPES if kind in types},
        "calibration": {},
        "golden": [_golden(types, presets)],
    }
    if presets:
        outputs.append(tensor("preset_logits", "float", ["batch", 6]))
        content["presets"] = {
            "domains": {
                "type": "choice",
                "head": "preset_logits",
                "slice": [0, 4],
                "options": ["code", "math", "law", "rest"],
                "label_map": {"code": "computer science", "math": "math", "law": "law", "rest": None},
            },
            "jailbreak": {"type": "noul", "head": "preset_logits", "slice": [4, 6], "options": ["false", "true"]},
        }
    return content


def _golden(types: Collection[str], presets: bool) -> dict[str, Any]:
    """One question of the first type: enough to prove that load checks run."""
    options = {"math": None, "law": None}
    samples: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "choice": ({"type": "choice", "instructions": "which", "criteria": options}, {"choice": "math"}),
        "noul": ({"type": "noul", "instructions": "math"}, {"type": "noul", "noul": 1.0}),
        "score": ({"type": "score", "instructions": "which", "criteria": ["law", "math"]}, {"score": 1.0}),
    }
    for kind, (question, answer) in samples.items():
        if kind in types:
            return {"state": "math", "questions": {"q": question}, "answers": {"q": answer}, "tolerance": 0.01}
    if presets:
        return {"state": "math", "heads": {"jailbreak": [0.982, 0.018]}, "tolerance": 0.01}
    question = {"type": "set" if "set" in types else "span", "instructions": "which", "criteria": {"math": None}}
    label = "q.math" if "set" in types else "q"
    answer = {"type": "noul", "noul": 1.0}
    return {"state": "math", "questions": {"q": question}, "answers": {label: answer}, "tolerance": 0.01}
