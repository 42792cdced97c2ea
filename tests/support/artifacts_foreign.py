"""Tiny artifacts of other people's contracts: the same files, tensor names, types and ranks, answers by hand.

Every graph compares words. A text's words are its tokens; an option or label is recognised by its first word:

    marker row     logit = 2 x (occurrences of the option's first word elsewhere in the row) + 0.25 x qtype x place
    sequences      logit of label i = 6 where the text has the word of that label, else 0
    tokens         logit of the class of a word = 6, of "O" 3
    GLiClass       logit = 4 x (occurrences of the label's first word elsewhere) - 2
    encoder        cosine of two texts = that of their word counts
    GLiNER         logit = +3 for a range whose first and last word are the label's word, + 0.5 a word more, else -3
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from tests.support.artifacts import UNK, WORDS

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
GLICLASS = (*SPECIAL, "<<LABEL>>", "<<SEP>>")
GLINER = (*SPECIAL, "<<ENT>>", "<<SEP>>")
I64, FLOAT, BOOL = TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL


def build_marker_row(directory: Path, *, config: Mapping[str, Any] | None = None, words: Sequence[str] = ()) -> Path:
    """A marker row artifact; `config` overrides keys of `rl_agent_config.json`."""
    _files(directory, SPECIAL, [*_PROMPT_WORDS, *words])
    settings = {"max_len": 64, "head_max_len": 32, "temperature": [1.0, 1.0, 1.0], **(config or {})}
    (directory / "rl_agent_config.json").write_text(json.dumps(settings))
    g = Graph()
    one, ids = g.constant([1]), "input_ids"
    g.node("Add", ["marker_pos", one], "after")
    g.node("GatherElements", [ids, "after"], "firsts", axis=1)
    g.occurrences("firsts", "found")
    g.node("Sub", ["found", g.constant(1.0)], "others")
    g.node("Mul", ["others", g.constant(2.0)], "scaled")
    g.node("Shape", ["marker_pos"], "shape")
    g.node("Gather", ["shape", g.constant(1)], "count")
    g.node("Range", [g.constant(0), "count", g.constant(1)], "places")
    g.node("Cast", ["places"], "places_f", to=FLOAT)
    g.node("Cast", ["qtype"], "kinds", to=FLOAT)
    g.node("Unsqueeze", ["kinds", one], "kinds2")
    g.node("Mul", ["kinds2", "places_f"], "ranked")
    g.node("Mul", ["ranked", g.constant(0.25)], "bias")
    g.node("Add", ["scaled", "bias"], "raw")
    g.node("Where", ["marker_mask", "raw", g.constant(-1e9)], "logits")
    g.node("Slice", ["logits", g.constant([0]), g.constant([2]), one], "act_logits")
    inputs = [
        *_text_inputs(),
        ("marker_pos", I64, ["b", "k"]),
        ("marker_mask", BOOL, ["b", "k"]),
        ("qtype", I64, ["b"]),
    ]
    outputs = [("logits", FLOAT, ["b", "k"]), ("act_logits", FLOAT, ["b", "n"])]
    g.save(directory / "model.onnx", inputs, outputs)
    return directory


def build_sequence_classifier(
    directory: Path, labels: Mapping[str, str], *, multi: bool = False, config: Mapping[str, Any] | None = None
) -> Path:
    """A classifier of `labels` (label: the word that speaks for it, "" for none). With token types, as BERT exports."""
    words = [word for word in labels.values() if word]
    known = _files(directory, SPECIAL, words)
    settings: dict[str, Any] = {
        "architectures": ["BertForSequenceClassification"],
        "id2label": {str(place): label for place, label in enumerate(labels)},
        "problem_type": "multi_label_classification" if multi else "single_label_classification",
        "max_position_embeddings": 16,
    }
    (directory / "config.json").write_text(json.dumps(settings | dict(config or {})))
    table = np.zeros((len(known), len(labels)), np.float32)
    for place, word in enumerate(labels.values()):
        if word:
            table[known.index(word), place] = 6.0
    g = Graph()
    g.node("Cast", ["attention_mask"], "mask", to=FLOAT)
    g.node("Unsqueeze", ["mask", g.constant([2])], "mask3")
    g.node("Gather", [g.array(table), "input_ids"], "looked")
    g.node("Mul", ["looked", "mask3"], "kept")
    g.node("ReduceMax", ["kept", g.constant([1])], "pooled", keepdims=0)
    g.zero_types("pooled", "logits")
    inputs = [*_text_inputs(), ("token_type_ids", I64, ["b", "s"])]
    (directory / "onnx").mkdir(exist_ok=True)
    g.save(directory / "onnx" / "model.onnx", inputs, [("logits", FLOAT, ["b", len(labels)])])
    return directory


def build_token_classifier(directory: Path, classes: Mapping[str, Sequence[str]]) -> Path:
    """A tagger: class name to the words of that class; must have "O". Pieces of words are marked ##, as WordPiece."""
    words = [word for group in classes.values() for word in group]
    known = _files(directory, SPECIAL, words, pieces=True)
    names = list(classes)
    settings = {"architectures": ["DistilBertForTokenClassification"], "id2label": dict(enumerate(names))}
    (directory / "config.json").write_text(json.dumps(settings))
    table = np.zeros((len(known), len(names)), np.float32)
    table[:, names.index("O")] = 3.0
    for place, group in enumerate(classes.values()):
        for word in group:
            table[known.index(word), place] = 6.0
    g = Graph()
    g.node("Gather", [g.array(table), "input_ids"], "logits")
    g.save(directory / "model.onnx", _text_inputs(), [("logits", FLOAT, ["b", "s", len(names)])])
    return directory


def build_text_encoder(
    directory: Path, *, words: Sequence[str] = (), pooled: bool = False, config: Mapping[str, Any] | None = None
) -> Path:
    """A plain encoder: every word is a direction of its own, so the cosine of two texts is that of their word counts.

    `pooled`: the graph gives one vector a text, as `sentence-transformers` exports do.
    """
    known = _files(directory, SPECIAL, words)
    table = np.eye(len(known), dtype=np.float32)
    table[: len(SPECIAL)] = 0.0
    settings = {"architectures": ["BertModel"], "hidden_size": len(known), "max_position_embeddings": 16}
    (directory / "config.json").write_text(json.dumps(settings | dict(config or {})))
    g = Graph()
    g.node("Gather", [g.array(table), "input_ids"], "looked" if pooled else "last_hidden_state")
    outputs = [("last_hidden_state", FLOAT, ["b", "s", len(known)])]
    if pooled:
        g.node("Cast", ["attention_mask"], "mask", to=FLOAT)
        g.node("Unsqueeze", ["mask", g.constant([2])], "mask3")
        g.node("Mul", ["looked", "mask3"], "kept")
        g.node("ReduceSum", ["kept", g.constant([1])], "sentence_embedding", keepdims=0)
        outputs = [("sentence_embedding", FLOAT, ["b", len(known)])]
    g.save(directory / "model.onnx", _text_inputs(), outputs)
    return directory


def build_gliclass(directory: Path, *, prompt_first: bool = True, config: Mapping[str, Any] | None = None) -> Path:
    """A GLiClass artifact."""
    known = _files(directory, GLICLASS, [])
    settings = {
        "model_type": "GLiClass",
        "architectures": ["GLiClassModel"],
        "prompt_first": prompt_first,
        "max_num_classes": 8,
        "max_position_embeddings": 48,
        **(config or {}),
    }
    (directory / "config.json").write_text(json.dumps(settings))
    g = Graph()
    g.marked(known.index("<<LABEL>>"), "firsts")
    g.occurrences("firsts", "found")
    g.node("Sub", ["found", g.constant(1.5)], "others")
    g.node("Mul", ["others", g.constant(4.0)], "logits")
    g.save(directory / "model.onnx", _text_inputs(), [("logits", FLOAT, ["b", "n"])])
    return directory


def build_gliner(directory: Path, *, mode: str = "span", scores_first: bool = False, max_words: int = 24) -> Path:
    """A GLiNER artifact in `span` or `token` mode, ranges of at most 3 words; `scores_first`: [3, b, w, c]."""
    known = _files(directory, GLINER, [])
    width = 3
    settings = {
        "span_mode": "markerV0" if mode == "span" else "token_level",
        "max_width": width,
        "max_len": max_words,
        "max_types": 8,
        "ent_token": "<<ENT>>",
        "sep_token": "<<SEP>>",
    }
    (directory / "gliner_config.json").write_text(json.dumps(settings))
    g = Graph()
    g.marked(known.index("<<ENT>>"), "firsts")
    # The id of each word: the token whose place in words_mask is the word's number.
    g.node("ReduceMax", ["text_lengths"], "most", keepdims=0)
    g.node("Add", ["most", g.constant(1)], "end")
    g.node("Range", [g.constant(1), "end", g.constant(1)], "numbers")
    g.node("Unsqueeze", ["numbers", g.constant([0, 2])], "numbers3")
    g.node("Unsqueeze", ["words_mask", g.constant([1])], "mask3")
    g.node("Equal", ["mask3", "numbers3"], "own")
    g.node("Cast", ["own"], "own_i", to=I64)
    g.node("Unsqueeze", ["input_ids", g.constant([1])], "ids3")
    g.node("Mul", ["own_i", "ids3"], "kept")
    g.node("ReduceSum", ["kept", g.constant([2])], "word_ids", keepdims=0)
    g.node("Unsqueeze", ["word_ids", g.constant([2])], "word_ids3")
    g.node("Unsqueeze", ["firsts", g.constant([1])], "firsts3")
    g.node("Equal", ["word_ids3", "firsts3"], "same")
    g.node("Cast", ["same"], "match", to=FLOAT)
    inputs = [*_text_inputs(), ("words_mask", I64, ["b", "s"]), ("text_lengths", I64, ["b", "one"])]
    if mode == "span":
        inputs += [("span_idx", I64, ["b", "spans", "idx"]), ("span_mask", BOOL, ["b", "spans"])]
        g.ranges(width)
        outputs: list[Any] = [("logits", FLOAT, ["b", "w", "k", "c"])]
    else:
        g.node("Mul", ["match", g.constant(6.0)], "scaled")
        g.node("Sub", ["scaled", g.constant(3.0)], "scores")
        g.node("Unsqueeze", ["scores", g.constant([3])], "scores4")
        g.node("Concat", ["scores4"] * 3, "last" if scores_first else "logits", axis=3)
        if scores_first:
            g.node("Transpose", ["last"], "logits", perm=[3, 0, 1, 2])
        outputs = [("logits", FLOAT, ["position", "b", "w", "c"])]
    g.save(directory / "model.onnx", inputs, outputs)
    return directory


_PROMPT_WORDS = ("choice", "score", "noul", "question", "no", "yes", "the", "statement", "does", "not", "hold", "holds")


def _files(directory: Path, special: Sequence[str], words: Sequence[str], *, pieces: bool = False) -> list[str]:
    """Tokenizer files; returns the vocabulary in id order."""
    directory.mkdir(parents=True, exist_ok=True)
    known = list(dict.fromkeys([*special, *WORDS, *words]))
    vocabulary = {word: index for index, word in enumerate(known)}
    model: Any = models.WordLevel(vocabulary, unk_token=UNK)
    if pieces:
        model = models.WordPiece(vocabulary, unk_token=UNK)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(list(special))
    tokenizer.enable_truncation(4)
    tokenizer.save(str(directory / "tokenizer.json"))
    named = {"cls_token": "[CLS]", "sep_token": {"content": "[SEP]"}, "pad_token": "[PAD]", "mask_token": "[MASK]"}
    (directory / "tokenizer_config.json").write_text(json.dumps(named))
    return known


def _text_inputs() -> list[tuple[str, int, list[Any]]]:
    return [("input_ids", I64, ["b", "s"]), ("attention_mask", I64, ["b", "s"])]


class Graph:
    """An ONNX graph being written down."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def node(self, kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> None:
        self._nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))

    def array(self, values: Any) -> str:
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(values, name))
        return name

    def constant(self, value: Any) -> str:
        kind = np.float32 if isinstance(value, float) else np.int64
        return self.array(np.array(value, kind))

    def occurrences(self, ids: str, output: str) -> None:
        """How often each of [b, k] ids stands in its row, padding left out."""
        self.node("Unsqueeze", [ids, self.constant([2])], f"{output}_k")
        self.node("Unsqueeze", ["input_ids", self.constant([1])], f"{output}_s")
        self.node("Equal", [f"{output}_k", f"{output}_s"], f"{output}_e")
        self.node("Cast", [f"{output}_e"], f"{output}_f", to=FLOAT)
        self.node("Cast", ["attention_mask"], f"{output}_m", to=FLOAT)
        self.node("Unsqueeze", [f"{output}_m", self.constant([1])], f"{output}_m3")
        self.node("Mul", [f"{output}_f", f"{output}_m3"], f"{output}_p")
        self.node("ReduceSum", [f"{output}_p", self.constant([2])], output, keepdims=0)

    def marked(self, marker: int, output: str) -> None:
        """The id after each marker, in order: [b, most markers of a row]."""
        self.node("Equal", ["input_ids", self.constant(marker)], "is_marker")
        self.node("Cast", ["is_marker"], "marker_f", to=FLOAT)
        self.node("ReduceSum", ["marker_f", self.constant([1])], "markers", keepdims=0)
        self.node("ReduceMax", ["markers"], "most_markers", keepdims=0)
        self.node("Cast", ["most_markers"], "k0", to=I64)
        self.node("Reshape", ["k0", self.constant([1])], "k")
        self.node("Shape", ["input_ids"], "size")
        self.node("Gather", ["size", self.constant(1)], "length")
        self.node("Range", [self.constant(0), "length", self.constant(1)], "steps")
        self.node("Sub", ["length", "steps"], "left")
        self.node("Cast", ["left"], "left_f", to=FLOAT)
        self.node("Mul", ["marker_f", "left_f"], "order")
        self._nodes.append(helper.make_node("TopK", ["order", "k"], ["top", "where"], axis=1))
        self.node("Add", ["where", self.constant(1)], "next")
        self.node("Sub", ["length", self.constant(1)], "bound")
        self.node("Min", ["next", "bound"], "inside")
        self.node("GatherElements", ["input_ids", "inside"], output, axis=1)

    def ranges(self, width: int) -> None:
        """logits [b, w, width, c] of ranges from `match` [b, w, c] and `span_idx` [b, w x width, 2]."""
        self.node("Gather", ["span_idx", self.constant(0)], "starts", axis=2)
        self.node("Gather", ["span_idx", self.constant(1)], "ends", axis=2)
        self.node("Sub", ["most", self.constant(1)], "last_word")
        self.node("Min", ["ends", "last_word"], "ends_in")
        self.node("Shape", ["match"], "match_shape")
        self.node("Slice", ["match_shape", self.constant([2]), self.constant([3])], "classes")
        self.node("Shape", ["starts"], "flat")
        self.node("Concat", ["flat", "classes"], "wide", axis=0)
        for name in ("starts", "ends_in"):
            self.node("Unsqueeze", [name, self.constant([2])], f"{name}3")
            self.node("Expand", [f"{name}3", "wide"], f"{name}_wide")
            self.node("GatherElements", ["match", f"{name}_wide"], f"{name}_match", axis=1)
        self.node("Mul", ["starts_match", "ends_in_match"], "both")
        self.node("Mul", ["both", self.constant(6.0)], "scaled")
        self.node("Sub", ["ends", "starts"], "longer")
        self.node("Cast", ["longer"], "longer_f", to=FLOAT)
        self.node("Mul", ["longer_f", self.constant(0.5)], "bonus")
        self.node("Unsqueeze", ["bonus", self.constant([2])], "bonus3")
        self.node("Mul", ["bonus3", "both"], "bonus_both")
        self.node("Add", ["scaled", "bonus_both"], "summed")
        self.node("Sub", ["summed", self.constant(3.0)], "scores")
        self.node("Slice", ["flat", self.constant([0]), self.constant([1])], "batch")
        self.node("Concat", ["batch", self.constant([-1]), self.constant([width]), "classes"], "out", axis=0)
        self.node("Reshape", ["scores", "out"], "logits")

    def zero_types(self, values: str, output: str) -> None:
        """Use `token_type_ids` without any effect while they are 0."""
        self.node("Cast", ["token_type_ids"], "types", to=FLOAT)
        self.node("ReduceSum", ["types", self.constant([1])], "types_sum", keepdims=1)
        self.node("Add", [values, "types_sum"], output)

    def save(self, path: Path, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        given, made = ([helper.make_tensor_value_info(*side) for side in sides] for sides in (inputs, outputs))
        graph = helper.make_graph(self._nodes, "tiny", given, made, initializer=self._constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), str(path))
