"""What is put off until nothing comes: reports of batches first, tidying up after them, each once."""

from __future__ import annotations

from router.runtime.jobs import Dropped
from router.runtime.observer import Reports
from router.runtime.quiet import PAUSE_S, QUIET_S, Quiet


class Notes:
    def __init__(self) -> None:
        self.batches: list[int] = []

    def batch(self, rows: int, tokens: int, padding: int, seconds: float) -> None:
        self.batches.append(rows)

    def dropped(self, reason: Dropped) -> None:
        raise AssertionError(reason)


def test_nothing_is_waited_for_without_work() -> None:
    quiet = Quiet(Reports(None), lambda: None)
    assert quiet.patience is None
    assert quiet.passed() == []


def test_reports_are_told_soon_and_tidying_up_waits_longer() -> None:
    notes, tidied = Notes(), []
    reports = Reports(notes)
    quiet = Quiet(reports, lambda: tidied.append(1))
    quiet.worked()
    reports.batch(3, 10, 0, 0.1)
    waits = [quiet.patience]
    assert quiet.passed() == []
    assert notes.batches == [3]
    waits.append(quiet.patience)
    (rest,) = quiet.passed()
    assert not tidied
    rest()
    waits.append(quiet.patience)
    assert tidied == [1]
    assert waits == [PAUSE_S, QUIET_S, None]
    assert quiet.passed() == []


def test_each_spell_of_work_is_tidied_up_after() -> None:
    quiet = Quiet(Reports(None), lambda: None)
    for _ in range(3):
        quiet.worked()
        quiet.worked()
        assert len(quiet.passed()) == 1
        assert quiet.passed() == []
