"""Facts of rules that the router computes by itself, and what stands for a rule in any configuration."""

from __future__ import annotations

from dataclasses import replace

from router.config.heuristics import KeywordRule
from router.config.plan import Leaf
from router.config.projections import Partition
from router.deciding.engine import prepare
from router.explaining.explanation import explain
from router.explaining.facts import computed_id, rule_ids
from router.explaining.notes import Notes
from router.explaining.preview import as_json
from router.signals.reading import Reading
from router.wire.request import read_request
from router.wire.surface import Format
from tests.support.plans import plan_of
from tests.support.recipes import all_of, decision, recipe

URGENT = KeywordRule("keyword:urgent", "OR", "exact", ("now", "asap"))
CALM = KeywordRule("keyword:calm", "OR", "exact", ("later",))
SOLO = Partition("mood", ("keyword:urgent", "keyword:calm"), "keyword:calm")


def test_a_computed_rule_is_explained_like_any_other() -> None:
    made = replace(
        recipe((), decision("hurry", all_of(Leaf("keyword", "keyword:urgent")))),
        heuristics=(URGENT, CALM),
        partitions=(SOLO,),
    )
    notes = Notes(
        request=read_request(Format.CHAT, b'{"messages":[{"role":"user","content":"now please"}]}'),
        readings={
            "keyword:urgent": Reading(None, True, 0.9, {"": 1.0}),
            "keyword:calm": Reading(None, True, 0.4, {"": 1.0}),
        },
        recipe="r",
    )
    body = as_json(explain(plan_of(), prepare(made), notes), plan_of(), trace=True)
    urgent, calm = body["signals"]
    assert (urgent["key"], urgent["deployment"], urgent["answer"], urgent["call_ms"]) == (
        "keyword:urgent",
        None,
        None,
        None,
    )
    assert (urgent["state"], urgent["bytes"], urgent["coverage"]) == ("user", 10, "full")
    assert (calm["matched"], calm["effective"]) == (True, False)
    assert body["decision_result"]["matched_signals"] == ["keyword:urgent"]
    (leaf,) = body["eval_trace"][0]["root_trace"]["children"]
    assert (leaf["signal_type"], leaf["signal_name"], leaf["state"]) == ("keyword", "urgent", "true")


def test_a_name_is_not_part_of_what_a_rule_is() -> None:
    assert computed_id(URGENT) == computed_id(replace(URGENT, name="keyword:pressing"))
    assert computed_id(URGENT) != computed_id(replace(URGENT, keywords=("now",)))


def test_ids_are_by_key() -> None:
    plan = plan_of()
    assert rule_ids(plan, plan.recipes["ask"]) == rule_ids(plan, plan.recipes["strict"])
    assert list(rule_ids(plan, plan.recipes["ask"])) == ["is_code"]
