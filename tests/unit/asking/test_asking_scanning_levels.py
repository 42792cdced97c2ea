"""Thresholds that follow the length of an input (ruling 30), from the windows of a scan to what decisions see."""

from __future__ import annotations

from dataclasses import replace

import pytest

from router.config.guards import GuardRule, in_bytes
from router.deciding.guarded import result_of
from router.questions import Predicate, level_at
from router.scan.rules import Result
from tests.support.guards import CAN, jailbreak
from tests.unit.asking.test_asking_scanning import HARMLESS, World, attack

LEVELS = ((100, 0.6), (10_000, 0.95))
SHORT = "xyzzy is here."
LONG = f"{HARMLESS} xyzzy"


def corrected() -> GuardRule:
    return attack(calibrated=True, levels=LEVELS)


def test_levels_hold_up_to_their_length_and_the_last_beyond() -> None:
    assert [level_at(LEVELS, size) for size in (0, 100, 101, 10_001)] == [0.6, 0.6, 0.95, 0.95]
    assert level_at((), 5) is None
    assert in_bytes(((64, 0.6),)) == ((256, 0.6),)


@pytest.mark.parametrize(("text", "matches"), [(SHORT, True), (LONG, False)])
def test_what_is_enough_in_a_short_input_is_not_in_a_long_one(text: str, matches: bool) -> None:
    rule = corrected()
    found = World(rule).read(text)  # says 0.9 of a window with the word
    assert (found.outcomes["attack"].result is Result.MATCH) == matches
    assert result_of(rule, found.outcomes, waits=False).reading.matched is matches


def test_a_written_threshold_is_never_touched() -> None:
    rule = attack()
    found = World(rule).read(LONG)
    assert found.outcomes["attack"].result is Result.MATCH
    assert result_of(rule, found.outcomes, waits=False).reading.matched is True


def test_it_is_the_bytes_that_count_and_near_misses_are_measured_from_it() -> None:
    rule = corrected()
    for size, level in ((100, 0.6), (101, 0.95)):
        assert (rule.at(size).threshold, rule.at(size).predicate) == (level, Predicate(gte=level))
    wide = "ü" * 45 + " xyzzy!!!!!"  # 56 code points, 101 bytes
    assert World(rule).read(wide).outcomes["attack"].result is Result.NO_MATCH


def test_the_card_of_a_local_model_brings_them_and_a_rule_with_a_threshold_of_its_own_has_none() -> None:
    can = replace(CAN, preset_levels={"jailbreak": ((64, 0.6), (510, 0.9))})
    assert jailbreak(can=can).levels == ((256, 0.6), (2040, 0.9))
    assert jailbreak("threshold: 0.7", can=can).levels == ()
    assert jailbreak().levels == ()


def test_a_model_that_describes_itself_later_brings_them_too() -> None:
    rule = attack(stopgap=True, question=replace(attack().question, preset="jailbreak"))
    found = rule.calibrated_by({"jailbreak": 0.8}, {"jailbreak": ((10, 0.7),)})
    assert (found.threshold, found.levels) == (0.8, ((40, 0.7),))
    written = replace(rule, stopgap=False)
    assert written.calibrated_by({"jailbreak": 0.8}, {"jailbreak": ((10, 0.7),)}) == written
