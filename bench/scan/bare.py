"""The bare loop: the forward passes of a scan's windows in a process of its own, with nothing around them.

It has the runtime's priority, number of threads and session options, and one window a pass, as the runtime has it.
`python -m bench.scan.bare ARTIFACT` reads a command a line from standard input and writes a result a line.
"""

from __future__ import annotations

import json
import os
import sys
import time

import numpy as np

from bench.lib.command import answer_commands
from bench.lib.fillers import filler
from bench.scan.reading import scan
from router.config.sizes import WrittenSizes
from router.runtime.artifact import open_artifact
from router.runtime.devices import Placement
from router.runtime.engine import import_onnxruntime
from router.runtime.threads import plan_threads
from router.runtime.tokens import Tokenizer

NICE = 10


def main(artifact: str) -> None:
    """Answer commands until standard input ends."""
    os.nice(NICE)
    opened = open_artifact(artifact)
    runtime = import_onnxruntime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = plan_threads().threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    graph = opened.card.graphs["encoder"]
    providers = Placement("cpu").providers(runtime.get_available_providers())
    session = runtime.InferenceSession(str(opened.path(graph.file)), options, providers=providers)
    tokenizer = Tokenizer(opened)
    wanted = [opened.card.presets["jailbreak"].head]
    sizes = WrittenSizes().scan(opened.card.limits.validated_input_tokens)

    def run(kind: str, size: int, seed: int) -> dict[str, float]:
        """The forward passes of a text's windows. Windows are cut and tokenised before the clock runs."""
        windows = scan(filler(kind, size, seed), sizes).texts
        feeds = []
        for text in windows:
            ids = tokenizer.frame(tokenizer.encode(text, 1 << 20).ids)[None]
            feeds.append({"input_ids": ids, "attention_mask": np.ones_like(ids)})
        cpu, began = time.process_time(), time.perf_counter()
        for feed in feeds:
            session.run(wanted, feed)
        return {
            "seconds": time.perf_counter() - began,
            "cpu_s": time.process_time() - cpu,
            "windows": len(windows),
            "bytes": sum(len(text.encode()) for text in windows),
        }

    answer_commands(lambda command: run(**json.loads(command)))


if __name__ == "__main__":
    main(sys.argv[1])
