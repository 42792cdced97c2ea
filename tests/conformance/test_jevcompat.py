"""The public conformance suite for System One servers, run on ours: every MUST, and each SHOULD that is not listed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

MISSED = {
    "errors.validation-shape",  # a body that is not JSON is 400 here, not 422
    "errors.shape",  # `detail` of an unknown model is a text here; the suite wants an object
}
"""Both follow from the error bodies that Pointsman documents; the official clients read either form."""
KEYED = {"auth.bearer", "auth.missing", "auth.invalid"}


def run(out: Path, url: str, *options: str, key: str | None = None) -> dict[str, Any]:
    """The suite's own report; it is run as its users run it."""
    program = Path(sys.executable).with_name("jevcompat")
    with_key = () if key is None else ("--key-env", "JEVCOMPAT_KEY")
    environ = os.environ | {"JEVCOMPAT_KEY": key or ""}
    arguments = [str(program), "test", url, "--json", str(out / "report.json"), *with_key, *options]
    done = subprocess.run(arguments, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report: dict[str, Any] = json.loads((out / "report.json").read_text())
    return report


def of_status(report: dict[str, Any], status: str) -> set[str]:
    return {result["id"] for result in report["results"] if result["status"] == status}


def test_without_a_key(url: str, tmp_path: Path) -> None:
    report = run(tmp_path, url)
    assert of_status(report, "fail") == MISSED
    assert of_status(report, "skip") == KEYED


def test_with_a_key(locked_url: str, key: str, tmp_path: Path) -> None:
    report = run(tmp_path, locked_url, key=key)
    assert of_status(report, "fail") == MISSED
    assert of_status(report, "skip") == {"auth.ignored-when-off"}


def test_under_an_alias(url: str, tmp_path: Path) -> None:
    report = run(tmp_path, url, "--model", "house-model")
    assert of_status(report, "fail") == MISSED
