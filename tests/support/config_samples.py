"""A small valid configuration, edits of it, and a decision model that is only a description."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from router.config.load import Loaded, load
from router.config.problems import ConfigError
from router.questions import Capabilities, QuestionType

CAN = Capabilities(
    question_types=frozenset({QuestionType.NOUL, QuestionType.CHOICE, QuestionType.SCORE}),
    presets={"jailbreak": QuestionType.NOUL, "complexity": QuestionType.CHOICE, "pii": QuestionType.SPAN},
    preset_labels={"complexity": ("easy", "medium", "hard"), "pii": ("PERSON", "EMAIL_ADDRESS")},
    max_input_tokens=32_768,
    validated_input_tokens=8_192,
    max_labels=64,
)

GOOD = textwrap.dedent(
    """\
    version: v0.5
    listeners:
      - name: public
        address: 127.0.0.1
        port: 8801
    providers:
      models:
        - name: small
          backend_refs:
            - endpoint: http://127.0.0.1:9101/v1
        - name: large
          backend_refs:
            - endpoint: https://llm.example.com
    recipes:
      - name: default
        signals:
          systemone:
            - name: tools
              question:
                type: noul
                instructions: Does it need a tool?
            - name: kind
              question:
                type: choice
                instructions: What kind?
                choices:
                  - key: code
                  - key: math
        decisions:
          - name: coding
            priority: 10
            rules:
              operator: AND
              conditions:
                - type: systemone
                  name: kind
                  label: code
                - type: systemone
                  name: tools
            modelRefs:
              - model: large
          - name: rest
            rules: {}
            modelRefs:
              - model: small
    entrypoints:
      - model_names: [auto]
        recipe: default
        default: true
    """
)


def describe(_: str) -> Capabilities | None:
    return CAN


def read(text: str, environ: Mapping[str, str] | None = None, *, serving: bool = False) -> Loaded:
    return load(text, environ=environ or {}, describe=describe, serving=serving, file="c.yaml")


def edited(*edits: tuple[str, str], text: str = GOOD) -> str:
    """GOOD with texts replaced; each must occur, and the first occurrence is taken."""
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def errors(text: str, environ: Mapping[str, str] | None = None, *, serving: bool = False) -> list[str]:
    """What is wrong, as `line:column path: message; hint`, without warnings."""
    try:
        read(text, environ, serving=serving)
    except ConfigError as error:
        return [problem.render().removeprefix("c.yaml:") for problem in error.problems if problem.severity == "error"]
    return []
