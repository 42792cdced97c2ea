"""Two public suites over HTTP, recorded as they are: neither was looked at while the model was made."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.lib.environment import Environment
from bench.lib.process import StartError

SYS1BENCH = Environment("sys1bench", "0.3.2", Path(__file__).parent / "sys1bench.lock", "half a minute and 400 MB")
GENERATORS = (
    "support_tickets",
    "guardrail_intent",
    "phishing_email",
    "policy_compliance",
    "rag_relevance",
    "log_triage",
    "multilingual_tickets",
)
"""Those of sys1bench that make their data without a network."""
_LONGEST_S = 900


def coherence(url: str, suite: str, folder: Path) -> Iterator[Mapping[str, Any]]:
    """jevbench's scores by pillar: whether answers to related questions fit each other. 1 is best."""
    out = folder / "jevbench.json"
    arguments = ["eval", "--url", f"{url}/v1/systemone", "--model", "jev-latest", "--suite", suite, "--no-cache"]
    _run([sys.executable, "-m", "jevbench", *arguments, "--concurrency", "2", "--out", str(out)], folder)
    scores = json.loads(out.read_text())["scores"]
    for pillar, score in {"overall": scores["overall"], **scores["pillars"]}.items():
        yield {"part": "jevbench", "suite": suite, "pillar": pillar, "score": score}


def free_questions(url: str, count: int, folder: Path) -> Iterator[Mapping[str, Any]]:
    """sys1bench's questions in free words, `count` states of each generator: accuracy and calibration of each."""
    config = folder / "sys1bench.yaml"
    config.write_text(
        f"adapter: jev_typesafe\nmodel_id: builtin-mini\nurl: {url}/v1/systemone\nallow_alias: true\ntimeout_s: 30\n"
    )
    for name in GENERATORS:
        manifest, told, scored = (folder / f"{name}.{end}" for end in ("jsonl", "predictions", "json"))
        _sys1bench(folder, "generate", name, str(manifest), "--n", str(count), "--seed", "7")
        _sys1bench(folder, "run", str(manifest), str(told), "--config", str(config))
        _sys1bench(folder, "score", str(told), "--out", str(scored))
        for title, found in json.loads(scored.read_text()).items():
            calibration = found["calibration"]
            yield {
                "part": "sys1bench",
                "set": name,
                "question": title.rpartition(" / ")[2],
                "n": found["n_rows"],
                "accuracy": _number(found["accuracy"]),
                "ece": _number(calibration["ece_width_15"]),
                "brier": _number(calibration["brier"]),
            }


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _sys1bench(folder: Path, *arguments: str) -> None:
    _run([str(SYS1BENCH.bin("sys1bench")), *arguments], folder)


def _run(command: Sequence[str], folder: Path) -> None:
    settings = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "TYPESAFE_API_KEY": "none", "NO_COLOR": "1"}
    done = subprocess.run(
        command, cwd=folder, env=settings, capture_output=True, text=True, timeout=_LONGEST_S, check=False
    )
    if done.returncode:
        raise StartError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-2000:]}")
