"""`validate` says where a set is asked as yes/no questions, so that nobody takes it for a native one."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.cli import main
from tests.support.artifacts import build_tiny_artifact

CONFIGURATION = """
version: v0.5
listeners: [{{name: a, address: 127.0.0.1, port: 8801}}]
providers:
  models: [{{name: m, backend_refs: [{{endpoint: "http://127.0.0.1:9101/v1"}}]}}]
recipes:
  - name: default
    signals:
      systemone:
        - name: topics
          deployment: tiny
          question: {{type: set, instructions: Which topics?, labels: [{{key: billing}}, {{key: shipping}}]}}
    decisions:
      - name: bills
        rules: {{type: systemone, name: topics, label: billing}}
        modelRefs: [{{model: m}}]
entrypoints: [{{model_names: [auto], recipe: default}}]
global: {{model_catalog: {{deployments: {{tiny: {{provider: model_runtime, artifact: {artifact}}}}}}}}}
"""


@pytest.mark.parametrize(("types", "told"), [(("noul", "set"), False), (("noul", "choice"), True)])
def test_a_composed_set_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], types: tuple[str, ...], told: bool
) -> None:
    artifact = build_tiny_artifact(tmp_path / "tiny", types=types)
    file = tmp_path / "c.yaml"
    file.write_text(CONFIGURATION.format(artifact=artifact))
    assert main(["validate", str(file)]) == 0
    assert ("rule 'topics'" in capsys.readouterr().out) is told
