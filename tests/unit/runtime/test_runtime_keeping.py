"""What long passes took is kept while more of them may come, within a limit, and then given back."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.runtime.keeping import LONG_TOKENS, MOST_KEPT, SHORT_PASSES, Keeping, resident_bytes

MIB = 1 << 20
LONG, SHORT = LONG_TOKENS + 1, LONG_TOKENS


class Memory:
    """What the process has, as the test says."""

    def __init__(self) -> None:
        self.now = 100 * MIB

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def keeping(memory: Memory) -> Keeping:
    return Keeping(memory)


def ran(keeping: Keeping, *passes: int) -> list[bool]:
    """Run passes of so many tokens; which of them gave back."""
    found = []
    for tokens in passes:
        found.append(keeping.due(tokens))
        keeping.ran(tokens, gave_back=found[-1])
    return found


def test_the_first_long_pass_gives_back_and_those_after_it_keep(keeping: Keeping) -> None:
    assert ran(keeping, SHORT, LONG, LONG, LONG) == [False, True, False, False]
    assert keeping.owes


def test_short_passes_owe_nothing(keeping: Keeping) -> None:
    assert ran(keeping, *[SHORT] * (3 * SHORT_PASSES)) == [False] * (3 * SHORT_PASSES)
    assert not keeping.owes


def test_giving_back_settles_what_is_owed(keeping: Keeping) -> None:
    ran(keeping, LONG, LONG)
    keeping.ran(SHORT, gave_back=True)
    assert not keeping.owes


def test_more_than_the_limit_is_given_back_by_the_next_pass(keeping: Keeping, memory: Memory) -> None:
    ran(keeping, LONG)
    memory.now += MOST_KEPT
    assert ran(keeping, LONG, LONG) == [False, False]
    memory.now += 1
    assert ran(keeping, LONG, SHORT, SHORT) == [False, True, False]
    assert not keeping.owes


def test_the_limit_counts_from_what_was_left_last(keeping: Keeping, memory: Memory) -> None:
    memory.now += 1000 * MIB
    ran(keeping, LONG)
    memory.now += 200 * MIB
    assert ran(keeping, LONG, LONG) == [False, False]
    keeping.ran(SHORT, gave_back=True)
    memory.now += 200 * MIB
    assert ran(keeping, LONG, LONG) == [False, False]


def test_passes_that_take_more_than_the_limit_each_give_back_every_time_but_the_first(
    keeping: Keeping, memory: Memory
) -> None:
    ran(keeping, LONG)
    floor, given = memory.now, []
    for _ in range(4):
        given.append(keeping.due(LONG))
        memory.now = floor if given[-1] else floor + 2 * MOST_KEPT
        keeping.ran(LONG, gave_back=given[-1])
    assert given == [False, True, False, True]


def test_when_no_long_pass_comes_any_more_a_short_one_gives_back(keeping: Keeping) -> None:
    ran(keeping, LONG)
    assert ran(keeping, LONG, *[SHORT] * SHORT_PASSES, SHORT, SHORT) == [*[False] * (SHORT_PASSES + 1), True, False]
    ran(keeping, LONG, *[SHORT] * (SHORT_PASSES - 1), LONG)
    assert not keeping.due(SHORT)


def test_a_pass_that_failed_before_it_gave_back_still_owes(keeping: Keeping) -> None:
    assert keeping.due(LONG)
    keeping.ran(LONG, gave_back=False)
    assert keeping.owes
    assert keeping.due(LONG)


def test_without_a_figure_there_is_no_limit() -> None:
    assert ran(Keeping(lambda: 0), *[LONG] * 50) == [True, *[False] * 49]


def test_resident_memory_is_read_where_the_system_tells_it(tmp_path: Path) -> None:
    assert resident_bytes() > MIB
    assert resident_bytes(tmp_path / "none") == 0
    (tmp_path / "odd").write_text("12")
    assert resident_bytes(tmp_path / "odd") == 0
