"""All presets of one state, beside the bare encoder on the same tokens: in this process, on one core."""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx.utils

from bench.runtime.texts import states
from router.questions import Question
from router.runtime.adapters import adapter_for
from router.runtime.artifact import Artifact
from router.runtime.asking import Asked
from router.runtime.engine import Engine, import_onnxruntime
from router.runtime.threads import ThreadPlan

TOKENS = 64
ENCODER = "pooled"
"""The encoder's own output: the vector of a text. What the heads add stands behind it."""


def questions(artifact: Artifact) -> list[Asked]:
    """Every preset that is asked about one text."""
    presets = artifact.card.presets.items()
    return [Asked(Question(preset.type, preset=name)) for name, preset in presets if preset.pair is None]


def rounds(artifact: Artifact, count: int, seed: int = 11) -> Iterator[Mapping[str, Any]]:
    """Milliseconds of both about new states, in turns: from text to answers, and from ids to the vector."""
    adapter = adapter_for(artifact, Engine(artifact, "cpu", ThreadPlan(1, None, 1, "one core")))
    asked = questions(artifact)
    with tempfile.TemporaryDirectory(prefix="bench-model-") as folder:
        bare = _bare(artifact, Path(folder) / "encoder.onnx")
        for turn, state in enumerate(itertools.islice(states(TOKENS, seed=seed), count + 5)):
            began = time.perf_counter()
            plan = adapter.plan(state, asked)
            told = adapter.answer(plan, adapter.run(plan.rows))
            answered = time.perf_counter()
            ids = plan.rows[0].ids[np.newaxis]
            feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
            start = time.perf_counter()
            bare.run([ENCODER], feed)
            ended = time.perf_counter()
            if turn >= 5:  # the first few choose kernels and plan memory
                row = {"presets_ms": (answered - began) * 1000, "encoder_ms": (ended - start) * 1000}
                yield {"part": "speed", "tokens": ids.size, "answers": len(told), **row}


def _bare(artifact: Artifact, file: Path) -> Any:
    """The graph as far as the vector."""
    graph = artifact.card.graphs["encoder"]
    inputs = [tensor.name for tensor in graph.inputs]
    onnx.utils.extract_model(str(artifact.path(graph.file)), str(file), inputs, [ENCODER])
    options = import_onnxruntime().SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return import_onnxruntime().InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
