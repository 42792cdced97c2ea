"""The card of a trained model: what its graphs are, what was fitted, and what was measured."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from train.examples import HAZARD, NOUL, PII, SPANS
from train.fitting import OVERLAP, WINDOW, Fit
from train.judging import PUBLISHED
from train.layout import CLASSES, HEADS, HIDDEN, PAIR_PARTS, PAIRS, WIDTH, head_slice, pair_slice
from train.rows import CLS, MOST, SEP

NAME: Final = "builtin-mini"
RULES: Final = "pii/1"
FILES: Final = ("decision.json", "model.onnx", "pair.onnx", "tokenizer.json", "LICENSE", "NOTICE", "README.md")
"""What an artifact holds, beside the list of its digests."""

# Chosen by hand on 30 questions and 10 labels over 50 short texts for the first version, whose vectors are as near to
# the published encoder's as these.
_CUSTOM: Final[Mapping[str, Any]] = {
    "embedding": "pooled",
    "choice": {"temperature": 0.05},
    "score": {"temperature": 0.05},
    "noul": {"a": 17, "b": 0.16, "contrast": 0.3},
    "set": {"a": 17, "b": 0.2, "threshold": 0.5},
    "quality": {"choice": "fair", "score": "weak", "noul": "weak", "set": "weak"},
}
_NOTES: Final[Mapping[str, Any]] = {
    "custom_questions": (
        "answered by topical similarity alone. choice and score: softmax over the cosine of the state and each option "
        "or level; their instructions are not read. noul: sigmoid(a * (cosine of the state with the instructions and "
        "the described true side - b)); a described false side counts against it (contrast). set: the same per label. "
        "Negation, degree and intent are near chance, so only choice is called fair."
    ),
    "dialogue": (
        "user_feedback reads `Assistant: <answer>`, a blank line, `User: <turn>`; turn_relation the user's turns, each "
        "after `User: `. A text longer than a row is read in windows and averaged, so the turn of a long answer counts "
        "less"
    ),
    "levels": (
        "jailbreak and safety: above 510 tokens the threshold rises with the number of windows that a text of that "
        "length is read in, so that long harmless text is flagged about as rarely as short"
    ),
    "pii": (
        "rules (pii/1) find e-mail, IP, phone, card, IBAN, national numbers and secrets; the model adds PERSON, "
        "ADDRESS and DATE_OF_BIRTH, where no rule and no identifier that is nobody's stands. US_SSN is the label of "
        "national numbers of every country, SECRET (beside the router's 17 types) of keys, tokens and passwords; "
        "DATE_OF_BIRTH is the only kind of DATE_TIME found. Spans of rules have probability 1; return_meta tells "
        "source and rule"
    ),
    "pair": "two texts are compared by their vectors; each is read as far as the encoder reads once (510 tokens)",
}


def card(version: str, released: str, fits: Mapping[str, Fit], evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """The card without golden cases. `evaluation` is free JSON; its `weak` names presets that measured weakly."""
    weak = frozenset(evaluation.get("weak", ()))
    return {
        "format": "decision-onnx/1",
        "name": NAME,
        "version": version,
        "released": released,
        "licence": "Apache-2.0",
        "quality": "experimental",
        "adapter": "two_tower",
        "question_types": ["noul", "choice", "score", "set"],
        "modalities": ["text"],
        "limits": {
            "graph_tokens": MOST + 2,
            "max_input_tokens": 32768,
            "validated_input_tokens": 8192,
            "max_options": 255,
            "max_labels": 64,
            "max_questions": 1024,
        },
        "reading": {
            "state_once": True,
            "long": "window",
            "window": {"tokens": WINDOW, "overlap": OVERLAP},
            "pool": {
                "noul": "max",
                "set": "max",
                "choice": "mean_logits",
                "score": "mean_logits",
                "span": "union",
            },
        },
        "tokens": {
            "pad": 0,
            "cls": CLS,
            "sep": SEP,
            "mask": 103,
            "forbidden_in_text": ["[CLS]", "[SEP]", "[PAD]", "[MASK]", "[UNK]"],
        },
        "graphs": _graphs(),
        "presets": {**_heads(fits, weak), PII: _spans(fits, weak), **_pairs(fits, weak)},
        "custom_questions": dict(_CUSTOM),
        "option_template": "{key}: {description}",
        "calibration": {
            "temperature": {"choice": 1.0, "noul": 1.0, "score": 1.0},
            "thresholds": {"span:*": 0.5},
            "fitted": False,  # what is fitted stands at the presets; these are of questions in free words
        },
        "precision": "int8 weights (Cast*Mul, folded to fp32 at load); answers do not depend on the batch",
        "numerics": "batch_independent",
        "eval": dict(evaluation),
        "notes": dict(_NOTES),
    }


def _tensor(name: str, kind: str, *shape: int | str) -> dict[str, Any]:
    return {"name": name, "type": f"tensor({kind})", "shape": list(shape)}


def _graphs() -> dict[str, Any]:
    ids = [_tensor(name, "int64", "batch", "seq") for name in ("input_ids", "attention_mask")]
    return {
        "encoder": {
            "file": "model.onnx",
            "inputs": ids,
            "outputs": [
                _tensor("pooled", "float", "batch", HIDDEN),
                _tensor("preset_logits", "float", "batch", len(HEADS) * WIDTH),
                _tensor("span_logits", "float", "batch", "seq", len(CLASSES)),
            ],
        },
        "pair": {
            "file": "pair.onnx",
            "inputs": [_tensor(name, "float", "n", HIDDEN) for name in ("u", "v")],
            "outputs": [_tensor("pair_logits", "float", "n", 2 * len(PAIRS))],
        },
    }


def _heads(fits: Mapping[str, Fit], weak: frozenset[str]) -> dict[str, Any]:
    found = {}
    for task, labels in HEADS.items():
        kind = "set" if task == HAZARD else "noul" if labels == NOUL else "choice"
        found[task] = {"head": "preset_logits", "slice": list(head_slice(task)), "type": kind, "options": list(labels)}
        found[task] |= _fitted(fits.get(task, Fit()), task in weak or task not in fits)
    found["refusal"]["reads"] = "answer"
    found["pii_present"]["rules"] = RULES
    return found


def _spans(fits: Mapping[str, Fit], weak: frozenset[str]) -> dict[str, Any]:
    labels = {"labels": list(SPANS), "label_map": dict(PUBLISHED), "unmapped": "drop", "whole_words": True}
    return {
        "head": "span_logits",
        "type": "span",
        **labels,
        "rules": RULES,
        **_fitted(fits.get(PII, Fit()), PII in weak),
    }


def _pairs(fits: Mapping[str, Fit], weak: frozenset[str]) -> dict[str, Any]:
    found = {}
    for task in PAIRS:
        u, v = PAIR_PARTS[task]
        found[task] = {"head": "pair_logits", "slice": list(pair_slice(task)), "type": "noul", "options": list(NOUL)}
        found[task] |= {"u": u, "v": v, **_fitted(fits.get(task, Fit()), task in weak or task not in fits)}
    return found


def _fitted(fit: Fit, weak: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"temperature": fit.temperature}
    if fit.threshold is not None:
        found["threshold"] = fit.threshold
    if fit.levels:
        found["levels"] = [
            {"tokens": level.tokens, "temperature": level.temperature}
            | ({} if level.threshold is None else {"threshold": level.threshold})
            for level in fit.levels
        ]
    return found | ({"quality": "weak"} if weak else {})


def write_card(folder: Path, data: Mapping[str, Any]) -> None:
    """Write `decision.json`."""
    (folder / "decision.json").write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def seal(folder: Path) -> None:
    """Write the list of digests over everything that an artifact holds."""
    lines = [
        f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n"
        for name in FILES
        if (folder / name).exists()
    ]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="ascii")
