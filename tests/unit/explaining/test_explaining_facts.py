"""Facts of rules that the router computes by itself, and what stands for a rule in any configuration."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

from router.asking.errors import CallOutcome
from router.asking.report import CallReport
from router.config.heuristics import ContextRule, HeuristicRule, KeywordRule, LanguageRule
from router.config.plan import Leaf, StateKind
from router.config.projections import Partition
from router.deciding.engine import prepare
from router.explaining.explanation import explain
from router.explaining.facts import computed_id, rule_ids
from router.explaining.notes import Notes
from router.explaining.preview import as_json
from router.questions import NoulAnswer
from router.signals.reading import Reading
from router.wire.request import read_request
from router.wire.surface import Format
from tests.support.plans import plan_of
from tests.support.recipes import all_of, decision, nouls, on, recipe

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


def test_every_process_gives_a_rule_the_same_id() -> None:
    source = """
from router.config.heuristics import MetadataRule
from router.explaining.facts import computed_id
print(computed_id(MetadataRule("metadata:tier", "tier", frozenset("abcdefgh"))))
"""
    runs = [
        subprocess.run(
            [sys.executable, "-c", source], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        )
        for seed in ("1", "2")
    ]
    assert runs[0].stdout == runs[1].stdout != ""


def told(*rules: HeuristicRule) -> list[object]:
    """What the preview says that each rule's number is held against."""
    made = replace(recipe((), decision("all", all_of())), heuristics=rules)
    notes = Notes(request=read_request(Format.CHAT, b'{"messages":[{"role":"user","content":"now"}]}'), recipe="r")
    return [
        one["predicate"] for one in as_json(explain(plan_of(), prepare(made), notes), plan_of(), trace=False)["signals"]
    ]


def test_thresholds_are_told_whatever_they_are_called() -> None:
    assert told(
        LanguageRule("language:de", "de", 0.4),
        ContextRule("context:long", 100, None),
        ContextRule("context:short", 0, 99),
        URGENT,
    ) == [{"gte": 0.4}, {"gte": 100}, {"lte": 99}, {}]


def test_a_yes_without_a_predicate_is_held_against_one_half_and_an_opening_took_no_call() -> None:
    asked, opened = nouls("asked", "opened")
    plan = plan_of()
    opened = replace(opened, deployment="builtin", state=StateKind.RELATION)
    made = recipe((replace(asked, deployment="builtin"), opened), decision("all", on("asked")))
    notes = Notes(
        request=read_request(Format.CHAT, b'{"messages":[{"role":"user","content":"now"}]}'),
        texts={("builtin", StateKind.USER): "now"},
        answers={"asked": NoulAnswer(0.6), "opened": NoulAnswer(0.0)},
        calls=(CallReport("builtin", CallOutcome.OK, 0.01, 1, 1, True),),
        recipe="r",
    )
    found = as_json(explain(plan, prepare(made), notes), plan, trace=False)["signals"]
    assert [(one["predicate"], one["call_ms"]) for one in found] == [({"gte": 0.5}, 10.0), ({"gte": 0.5}, None)]


def test_ids_are_by_key() -> None:
    plan = plan_of()
    assert rule_ids(plan, plan.recipes["ask"]) == rule_ids(plan, plan.recipes["strict"])
    assert list(rule_ids(plan, plan.recipes["ask"])) == ["is_code"]
