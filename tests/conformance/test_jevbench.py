"""The public coherence suite's dimension that tests a server rather than a model: answers apart and together agree."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_answers_do_not_depend_on_the_batch(url: str, tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    arguments = ["--url", f"{url}/v1/systemone", "--model", "jev-latest", "--suite", "examples", "--dimensions", "BAT"]
    done = subprocess.run(
        [sys.executable, "-m", "jevbench", "eval", *arguments, "--no-cache", "--out", str(out)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(out.read_text())["scores"]["pillars"]["BAT"] == 1.0
