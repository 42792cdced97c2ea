"""Plans for tests of what serves them: a small configuration, and a model whose answers the test scripts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

from router.asking.asker import Asker
from router.asking.fleet import Connections
from router.config.load import load
from router.config.plan import Plan
from router.generation import Generation
from router.questions import DECIDING, Answer, Capabilities, QuestionType

EVERYTHING = Capabilities(frozenset(DECIDING), presets={"domains": QuestionType.CHOICE}, similarity=True)

PLAIN = """\
version: v0.5
listeners: [{name: public, address: 127.0.0.1, port: 8801}]
providers:
  models:
    - {name: coder, provider_model_id: qwen3-coder, backend_refs: [{endpoint: "http://127.0.0.1:9101/v1"}]}
    - {name: general, backend_refs: [{endpoint: "http://127.0.0.1:9101/v1"}]}
    - {name: claude, api_format: anthropic, backend_refs: [{endpoint: "http://127.0.0.1:9102/v1"}]}
recipes:
  - name: ask
    signals:
      systemone:
        - {name: is_code, question: {type: noul, instructions: Is this code?}, predicate: {gte: 0.7}}
    decisions:
      - name: code
        rules: {operator: AND, conditions: [{type: systemone, name: is_code}]}
        modelRefs: [{model: coder}]
  - name: strict
    signals:
      systemone:
        - {name: is_code, question: {type: noul, instructions: Is this code?}, predicate: {gte: 0.7}}
    decisions:
      - name: code
        rules: {operator: AND, on_unknown: fail_request, conditions: [{type: systemone, name: is_code}]}
        modelRefs: [{model: coder}]
  - name: fixed
    decisions:
      - name: all
        rules: {}
        modelRefs: [{model: general}]
entrypoints:
  - {model_names: [auto], recipe: ask, default: true}
  - {model_names: [strict], recipe: strict}
  - {model_names: [fixed], recipe: fixed}
"""


def plan_of(text: str = PLAIN, environ: Mapping[str, str] | None = None) -> Plan:
    """The plan of a configuration; any artifact can be asked everything."""
    return load(text, environ=environ or {}, describe=lambda artifact: EVERYTHING, serving=True).plan


@dataclass
class ScriptedAsker:
    """Answers every stage with `answers`; `asked` are the texts of each."""

    answers: Mapping[str, Answer] = field(default_factory=dict)
    asked: list[Mapping[Any, str]] = field(default_factory=list)

    async def ask(self, stage: object, texts: Mapping[Any, str], **more: object) -> SimpleNamespace:
        self.asked.append(texts)
        return SimpleNamespace(answers=self.answers, calls=())


def generation_of(plan: Plan, asker: object | None = None) -> Generation:
    """A generation that asks `asker` and runs no process."""
    return Generation(plan, connections(), cast(Asker, asker or ScriptedAsker()))


def connections(**given: Any) -> Connections:
    """Connections to nothing, but for what is given."""
    nothing: dict[str, Any] = {field.name: {} for field in dataclasses.fields(Connections)}
    return Connections(**nothing | given)
