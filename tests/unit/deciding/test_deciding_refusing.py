"""Whether one match settles a refusal."""

from __future__ import annotations

from dataclasses import replace

from router.config.actions import Actions
from router.config.plan import Decision, Rule
from router.deciding.engine import prepare
from router.deciding.refusing import could_refuse, match_alone_refuses
from router.questions import NoulAnswer
from router.signals.reading import read_all
from tests.support.recipes import all_of, any_of, decision, not_, nouls, on, recipe

RULES = nouls("attack", "harm", "code")


def refusing(name: str, rule: Rule, priority: int = 10) -> Decision:
    return replace(decision(name, rule, priority), model_refs=(), actions=Actions(fast_response="No."))


def alone(*decisions: Decision, **known: float) -> bool:
    made = recipe(RULES, *decisions)
    rules = [rule for rule in RULES if rule.name in known]
    answers = {name: NoulAnswer(value) for name, value in known.items()}
    return match_alone_refuses(prepare(made), read_all(rules, answers), "attack")


def test_the_highest_decision_that_needs_nothing_else_refuses() -> None:
    assert alone(refusing("block", on("attack")), decision("code", on("code")))
    assert alone(refusing("block", any_of(on("attack"), on("harm"))), decision("rest", all_of()))


def test_a_decision_above_it_that_could_match_leaves_it_open() -> None:
    above = decision("code", on("code"), priority=20)
    assert not alone(refusing("block", on("attack")), above)
    assert alone(refusing("block", on("attack")), above, code=0.1)
    assert not alone(refusing("block", on("attack")), above, code=0.9)


def test_a_decision_that_needs_more_does_not_refuse_yet() -> None:
    both = refusing("block", all_of(on("attack"), on("harm")))
    assert not alone(both)
    assert alone(both, harm=0.9)
    assert not alone(refusing("block", all_of(on("attack"), not_(on("harm")))))


def test_a_decision_with_a_model_does_not_refuse() -> None:
    assert not alone(decision("careful", on("attack"), priority=99), refusing("block", on("attack")))


def test_its_own_match_is_taken_as_it_is() -> None:
    assert alone(refusing("block", on("attack")), attack=0.8)


def test_what_could_refuse() -> None:
    compiled = prepare(recipe(RULES, refusing("block", all_of(on("attack"), on("harm"))), decision("code", on("code"))))
    assert could_refuse(compiled, {}, "attack")
    assert could_refuse(compiled, {}, "code")
    calm = read_all(RULES[1:2], {"harm": NoulAnswer(0.1)})
    assert not could_refuse(compiled, calm, "attack")
