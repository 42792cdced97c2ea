"""What a record keeps of how a request's route came about."""

from __future__ import annotations

from dataclasses import replace

from router.asking.errors import CallOutcome
from router.asking.report import WaitedFor, WaitReport
from router.deciding.engine import decide, prepare
from router.explaining.routes import projection_trace, route_diagnostics
from router.questions import NoulAnswer, QuestionType, UnknownReason
from router.signals.reading import Reading, read
from tests.support.plans import PLAIN, plan_of

PLAINLY = """\
    decisions:
      - name: code
        rules: {operator: AND, conditions: [{type: systemone, name: is_code}]}
"""
SCORED = PLAIN.replace(
    PLAINLY,
    """\
    projections:
      scores:
        - {name: load, method: weighted_sum, inputs: [{type: systemone, name: is_code, weight: 1, value_source: raw}]}
      mappings:
        - name: bands
          source: load
          method: threshold_bands
          outputs: [{name: light, lt: 0.5}, {name: heavy, gte: 0.5}]
    decisions:
      - name: code
        rules: {operator: AND, conditions: [{type: projection, name: heavy}]}
""",
    1,
)


def test_projections_step_by_step() -> None:
    plan = plan_of(SCORED)
    recipe = plan.recipes["ask"]
    readings = {"is_code": read(recipe.questions[0], NoulAnswer(0.75))}
    outcome = decide(prepare(recipe), readings)
    light, heavy = projection_trace(plan, "ask", outcome)
    assert light == light | {"mapping": "bands", "score": "load", "output": "light", "state": "false", "value": 0.75}
    assert heavy == heavy | {"method": "threshold_bands", "output": "heavy", "state": "true", "low": 0.75, "high": 0.75}
    assert heavy["confidence"] > light["confidence"] == 0.0


def test_a_score_that_is_not_known_has_bounds() -> None:
    plan = plan_of(SCORED)
    readings = {"is_code": Reading(QuestionType.NOUL, None, reason=UnknownReason.TIMEOUT)}
    outcome = decide(prepare(plan.recipes["ask"]), readings)
    assert [
        (one["value"], one["low"], one["high"], one["state"]) for one in projection_trace(plan, "ask", outcome)
    ] == [(None, 0.0, 1.0, "unknown")] * 2
    assert projection_trace(plan, "fixed", outcome) == []
    assert projection_trace(plan, None, outcome) == projection_trace(plan, "ask", None) == []


def test_what_stood_in_the_way() -> None:
    plan = plan_of()
    readings = {
        "is_code": Reading(QuestionType.NOUL, None, reason=UnknownReason.TIMEOUT),
        "jailbreak:attack": Reading(QuestionType.NOUL, True, by_policy=True),
        "keyword:word": Reading(None, True),
    }
    outcome = replace(decide(prepare(plan.recipes["strict"]), readings), applied=("code",))
    waited = WaitReport(0.5, (WaitedFor("builtin", CallOutcome.OK, 1, 2),))
    found = route_diagnostics(readings, outcome, waited)
    assert found["signal_errors"] == {"systemone:is_code": "timeout"}
    assert found["failed_closed"] == ["jailbreak:attack"]
    assert found["applied_unknown_policy"] == ["code"]
    assert found["overload_wait"]["ended"] == "ok"
    assert route_diagnostics({}, None, None) == {
        "signal_errors": {},
        "failed_closed": [],
        "applied_unknown_policy": [],
        "overload_wait": None,
    }
