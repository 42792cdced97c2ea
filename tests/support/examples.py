"""The recipes under examples/ with their probes: found, and put on a test's ports."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import yaml

from tests.support.stack import BACKENDS, ROOT, Stack, running

EXAMPLES = ROOT / "examples"
RECIPES = sorted(path.parent for path in EXAMPLES.glob("*/probes.jsonl"))
"""Folders of recipes with probes."""

MEASURING = EXAMPLES / "learned-families"
"""The folder that measures the learned families: held-out files only."""

PATIENCE_MS = 30_000
_ASKING = ("systemone", "domains", "complexity", "modality", "fact_check", "user_feedbacks", "turn_relation")
_PORTS = {"9101": "<openai>", "9102": "<anthropic>", "9103": "<responses>"}


def served(folder: Path, directory: Path) -> AbstractContextManager[Stack]:
    """The product on a folder's configuration, with the sample backends that it names."""
    template = on_free_ports(folder)
    return running(directory, template, only=[name for name in BACKENDS if f"<{name}>" in template])


def on_free_ports(folder: Path) -> str:
    """A folder's configuration as a template for `stack.running`: its ports become placeholders.

    Nothing else is changed but that questions are waited for longer, because a test machine may be busy.
    """
    text = (folder / "pointsman.yaml").read_text("utf-8")
    for port, name in _PORTS.items():
        text = text.replace(f"127.0.0.1:{port}/", f"127.0.0.1:{name}/")
    document: dict[str, Any] = yaml.safe_load(text)
    document["listeners"][0]["port"] = "<listener>"
    for recipe in document["recipes"]:
        for family in _ASKING:
            for rule in recipe["signals"].get(family, ()):
                rule["timeout_ms"] = PATIENCE_MS
    services = {service: {"port": f"<{service}>"} for service in ("extproc", "metrics", "management")}
    document.setdefault("global", {})["services"] = services
    return yaml.safe_dump(document, allow_unicode=True)
