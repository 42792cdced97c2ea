from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest

from router.asking.fleet import Connections, Fleet
from router.config.deployments import Deployment
from router.config.plan import Plan
from router.questions import DECIDING, Capabilities, Predicate
from router.serving.errors import NotServable
from router.serving.prepare import asked_deployments, connect, prepare, undescribed
from tests.support.fake_systemone import FakeSystemOne, default_card
from tests.support.plans import PLAIN, connections, plan_of


class Ignored:
    """An observer whom nothing interests."""

    def __getattr__(self, name: str) -> Any:
        return lambda *anything: None


def attached(endpoint: str, text: str = PLAIN) -> Plan:
    deployments = f"{{far: {{provider: model_runtime, endpoint: '{endpoint}', served_name: fake}}}}"
    named = text.replace("{name: is_code, ", "{name: is_code, deployment: far, ")
    return plan_of(named + f"global: {{model_catalog: {{deployments: {deployments}}}}}\n")


SET = PLAIN.replace(
    "question: {type: noul, instructions: Is this code?}, predicate: {gte: 0.7}",
    "question: {type: set, instructions: What is it?, labels: [{key: code}]}",
).replace("name: is_code}]", "name: is_code, label: code}]")
PRESET = PLAIN.replace(
    "question: {type: noul, instructions: Is this code?}, predicate: {gte: 0.7}", "preset: domains"
).replace("name: is_code}]", "name: is_code, label: law}]")


GUARDED = """\
version: v0.5
listeners: [{name: public, address: 127.0.0.1, port: 8801}]
providers: {models: [{name: m, backend_refs: [{endpoint: "http://127.0.0.1:1/v1"}]}]}
recipes:
  - name: g
    signals:
      jailbreak: [{name: a, deployment: far}, {name: w, deployment: far, threshold: 0.7}]
      safety: [{name: s, deployment: far, hazard: {labels: [hate]}}]
      pii: [{name: p, deployment: far}]
    decisions:
      - name: d
        rules:
          operator: OR
          conditions:
            - {type: jailbreak, name: a}
            - {type: jailbreak, name: w}
            - {type: safety, name: s}
            - {type: pii, name: p}
        modelRefs: [{model: m}]
      - {name: rest, rules: {}, modelRefs: [{model: m}]}
entrypoints: [{model_names: [auto], recipe: g, default: true}]
"""


FACTS = """\
version: v0.5
listeners: [{name: public, address: 127.0.0.1, port: 8801}]
providers: {models: [{name: m, backend_refs: [{endpoint: "http://127.0.0.1:1/v1"}]}]}
recipes:
  - name: f
    signals: {fact_check: [{name: a, deployment: far}, {name: w, deployment: far, threshold: 0.4}]}
    decisions:
      - name: d
        rules: {operator: OR, conditions: [{type: fact_check, name: a}, {type: fact_check, name: w}]}
        modelRefs: [{model: m}]
      - {name: rest, rules: {}, modelRefs: [{model: m}]}
entrypoints: [{model_names: [auto], recipe: f, default: true}]
"""


class TestWhatIsAsked:
    def test_only_what_a_published_recipe_asks(self) -> None:
        assert [one.name for one in asked_deployments(plan_of())] == ["builtin"]
        unpublished = PLAIN.replace("  - {model_names: [auto], recipe: ask, default: true}\n", "")
        unpublished = unpublished.replace("  - {model_names: [strict], recipe: strict}\n", "")
        assert asked_deployments(plan_of(unpublished)) == ()


class TestAttached:
    async def test_it_is_described_by_itself(self, tmp_path: Path) -> None:
        async with FakeSystemOne() as fake, Fleet(tmp_path) as fleet:
            plan = attached(fake.endpoint)
            assert [one.name for one in undescribed(plan)] == ["far"]
            generation = await connect(plan, fleet, Ignored())
            assert undescribed(generation.plan) == ()
            capabilities = generation.plan.deployments["far"].capabilities
            assert capabilities is not None
            assert capabilities.question_types == set(DECIDING)
            assert generation.plan.revision == plan.revision

    async def test_its_own_thresholds_count_where_the_rule_writes_none(self, tmp_path: Path) -> None:
        async with FakeSystemOne() as fake, Fleet(tmp_path) as fleet:
            levels = {"jailbreak": ("noul", 0.9), "safety": ("noul", 0.8), "hazard": ("set", 0.3), "pii": ("span", 0.6)}
            presets = {name: {"type": kind, "threshold": level} for name, (kind, level) in levels.items()}
            fake.listing = {"data": [default_card("fake") | {"presets": presets}]}
            guards = {
                rule.name.partition(":")[2] or rule.name: rule
                for rule in (await connect(attached(fake.endpoint, GUARDED), fleet, Ignored())).plan.recipes["g"].guards
            }
            found = {name: (rule.threshold, rule.calibrated) for name, rule in guards.items()}
            assert found == {"a": (0.9, True), "w": (0.7, False), "s": (0.8, True), "p": (0.6, True)}
            assert guards["a"].predicate == Predicate(gte=0.9)
            assert guards["p"].question.threshold is None
            hazard = guards["s"].hazard
            assert hazard is not None
            assert (hazard.threshold, hazard.calibrated, hazard.question.threshold) == (0.3, True, None)

    async def test_so_do_those_of_questions_that_need_one(self, tmp_path: Path) -> None:
        async with FakeSystemOne() as fake, Fleet(tmp_path) as fleet:
            plan = attached(fake.endpoint, FACTS)
            before = {rule.name: (rule.predicate, rule.stopgap) for rule in plan.recipes["f"].questions}
            assert before == {
                "fact_check:a": (Predicate(gte=0.5), True),
                "fact_check:w": (Predicate(gte=0.4), False),
            }
            fake.listing = {"data": [default_card("fake") | {"presets": {"fact_check": {"type": "noul"}}}]}
            kept = (await connect(plan, fleet, Ignored())).plan.recipes["f"].questions
            assert kept == plan.recipes["f"].questions
        async with FakeSystemOne() as fake, Fleet(tmp_path) as fleet:
            card = {"presets": {"fact_check": {"type": "noul", "threshold": 0.8}}}
            fake.listing = {"data": [default_card("fake") | card]}
            found = (await connect(attached(fake.endpoint, FACTS), fleet, Ignored())).plan.recipes["f"].questions
            assert {rule.name: (rule.predicate, rule.stopgap) for rule in found} == {
                "fact_check:a": (Predicate(gte=0.8), False),
                "fact_check:w": (Predicate(gte=0.4), False),
            }

    async def test_one_that_is_silent_is_asked_as_the_plan_says(self, tmp_path: Path) -> None:
        async with Fleet(tmp_path) as fleet:
            generation = await prepare(attached(f"unix://{tmp_path}/nobody"), fleet, Ignored(), ready_within_s=5)
            assert [one.name for one in undescribed(generation.plan)] == ["far"]

    @pytest.mark.parametrize(
        ("text", "types", "presets", "refused"),
        [
            (
                PLAIN,
                ["choice"],
                {},
                "recipe 'ask', rule 'is_code': decision model 'far' does not answer noul questions",
            ),
            (PLAIN, ["noul"], {}, None),
            (SET, ["noul"], {}, None),
            (SET, ["set"], {}, None),
            (SET, ["choice"], {}, "does not answer set questions"),
            (PRESET, ["noul"], {}, "does not answer preset 'domains'"),
            (PRESET, ["noul"], {"domains": {"type": "noul"}}, "does not answer preset 'domains'"),
            (PRESET, [], {"domains": {"type": "choice", "labels": ["law"]}}, None),
        ],
    )
    async def test_what_it_cannot_answer_is_not_served(
        self, tmp_path: Path, text: str, types: list[str], presets: dict[str, Any], refused: str | None
    ) -> None:
        async with FakeSystemOne() as fake, Fleet(tmp_path) as fleet:
            fake.listing = {"data": [default_card("fake", types) | {"presets": presets}]}
            plan = attached(fake.endpoint, text)
            if refused is None:
                await connect(plan, fleet, Ignored())
                return
            with pytest.raises(NotServable, match=refused) as raised:
                await connect(plan, fleet, Ignored())
            assert len(raised.value.problems) == 2, "one for each recipe that asks it"


class LateFleet:
    """A fleet whose models never get ready, or whose endpoints make no sense."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.desk = None

    def use(self, deployments: Iterable[Deployment]) -> Connections:
        if self.error is not None:
            raise self.error
        return connections(processes={one.name: NeverReady() for one in deployments})


class NeverReady:
    is_ready = False

    async def wait_ready(self) -> None:
        import asyncio

        await asyncio.Event().wait()


class TestManaged:
    async def test_one_that_is_late_is_named(self) -> None:
        with pytest.raises(NotServable, match=r"decision model 'builtin' did not answer within 0\.01 s"):
            await prepare(plan_of(), cast(Any, LateFleet()), Ignored(), ready_within_s=0.01)

    async def test_an_endpoint_that_makes_no_sense_is_no_traceback(self) -> None:
        with pytest.raises(NotServable, match="nonsense"):
            await connect(plan_of(), cast(Any, LateFleet(ValueError("nonsense"))), Ignored())

    async def test_a_capability_that_changed_under_a_plan(self) -> None:
        import dataclasses

        plan = plan_of()
        less = dataclasses.replace(plan.deployments["builtin"], capabilities=Capabilities(frozenset()))
        changed = dataclasses.replace(plan, deployments={"builtin": less})
        with pytest.raises(NotServable, match="noul"):
            await connect(changed, cast(Any, LateFleet()), Ignored())
