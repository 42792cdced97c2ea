"""One conversation's way through decisions and models."""

from __future__ import annotations

from router.explaining.trajectories import trajectory_json


def test_turns_and_changes() -> None:
    records = [
        {"id": "1", "turn_index": 1, "decision": "a", "selected_model": "m", "signals": {"secret": True}},
        {"id": "2", "turn_index": 2, "decision": "b", "selected_model": "m"},
        {"id": "3", "turn_index": 3, "decision": "b", "selected_model": None},
        {"id": "4", "turn_index": 4, "decision": "a", "selected_model": "n"},
    ]
    found = trajectory_json("s", None, records)
    assert (found["session_id"], found["recipe"], found["total"]) == ("s", None, 4)
    assert (found["models"], found["model_changes"], found["decision_changes"]) == (["m", "n"], 1, 2)
    assert [turn["id"] for turn in found["turns"]] == ["1", "2", "3", "4"]
    assert "signals" not in found["turns"][0]


def test_nothing_of_nobody() -> None:
    assert trajectory_json("s", "r", [])["turns"] == []
