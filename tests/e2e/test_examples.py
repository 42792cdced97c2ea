"""Every example of the "Decision signal" document, run as it stands but for ports and the model.

The model is a tiny ONNX artifact whose answers follow from the words of a prompt, so that each example's routes can be
reached on purpose. The example with a span question attaches it as a server of its own, as the example says.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
import yaml

from tests.support.artifacts import build_tiny_artifact
from tests.support.stack import ROOT, Stack, eventually, running, spawn, stop

EXAMPLES = ROOT / "examples" / "decision-signal"

# Example -> prompts with the decision that each must come to (None: no decision, the default model).
EXPECTED: dict[str, list[tuple[str, str | None, str]]] = {
    "needs-tools": [
        ("please call a tool for me", "use-tools", "tool-user"),
        ("write a poem", None, "small-chat"),
    ],
    "hard-code": [
        ("code that needs multi reasoning", "hard-code", "large-coder"),
        ("hard", "hard-anything", "large-coder"),
        ("trivial chat", "everything-else", "small-chat"),
    ],
    "effort-projection": [
        ("an expert derivation and proof", "deliberate", "large-reasoner"),
        ("none", None, "small-chat"),
    ],
    "set-and-span": [
        ("billing for account 12", "billing-with-account", "support-model"),
        ("billing of three invoices", None, "small-chat"),
        ("where is my account", None, "small-chat"),
    ],
}


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    words = "tool tools call multi reasoning trivial moderate none little expert derivation billing account number"
    return build_tiny_artifact(tmp_path_factory.mktemp("tiny") / "tiny", words=words.split())


def adapted(name: str, artifact: Path, socket: Path) -> str:
    """The example with free ports for its addresses and the tiny artifact for its models."""
    document: dict[str, Any] = yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())
    document["listeners"][0]["port"] = "<listener>"
    for model in document["providers"]["models"]:
        model["backend_refs"] = [{"endpoint": "http://127.0.0.1:<openai>/v1"}]
    settings = document.setdefault("global", {})
    settings["services"] = {service: {"port": f"<{service}>"} for service in ("extproc", "metrics", "management")}
    catalog = settings.setdefault("model_catalog", {})
    deployments = catalog.setdefault("deployments", {})
    for deployment in deployments.values():
        if "artifact" in deployment:
            deployment["artifact"] = str(artifact)
        else:
            deployment["endpoint"] = f"unix://{socket}"
    if not deployments:
        deployments["tiny"] = {"provider": "model_runtime", "artifact": str(artifact)}
        catalog["system"] = {"decision_model": "tiny"}
    return yaml.safe_dump(document)


@contextlib.contextmanager
def attached_model(directory: Path, artifact: Path, socket: Path) -> Iterator[None]:
    """The tiny artifact served alone on a socket, until the end of the block."""
    arguments = ("runtime", "serve", "--artifact", str(artifact), "--served-name", "vela2", "--uds", str(socket))
    process = spawn(directory / "model.log", "-m", "router.cli", *arguments)
    try:
        eventually(socket.exists, "the model's socket", within=30)
        yield
    finally:
        stop(process)


def test_every_example_has_expectations() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.yaml")} == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_example_routes_as_it_says(name: str, artifact: Path, tmp_path: Path) -> None:
    socket = tmp_path / "span.sock"
    with contextlib.ExitStack() as stack:
        if name == "set-and-span":
            stack.enter_context(attached_model(tmp_path, artifact, socket))
        product = stack.enter_context(running(tmp_path, adapted(name, artifact, socket)))
        seen = [ask(product, prompt) for prompt, _, _ in EXPECTED[name]]
    assert seen == [(decision, model) for _, decision, model in EXPECTED[name]]


def ask(product: Stack, prompt: str) -> tuple[str | None, str]:
    """The decision and the model that a prompt comes to."""
    client = openai.OpenAI(base_url=product.base + "/v1", api_key="unused", max_retries=0)
    answer = client.chat.completions.with_raw_response.create(
        model="auto", messages=[{"role": "user", "content": prompt}]
    )
    return answer.headers.get("x-vsr-selected-decision"), answer.headers["x-vsr-selected-model"]
