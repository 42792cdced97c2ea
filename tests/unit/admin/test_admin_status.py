from __future__ import annotations

import pytest

from router.admin.status import ReloadFailure, Status


class TestLive:
    def test_until_the_first_beat_a_start_is_left_alone(self) -> None:
        assert Status(clock=lambda: 1e9).live

    def test_a_loop_that_is_silent_for_too_long(self) -> None:
        now = 0.0
        status = Status(clock=lambda: now, stuck_after_s=60)
        status.beat()
        seen = []
        for now in (59.9, 60.0):
            seen.append(status.live)
        status.beat()
        assert [*seen, status.live] == [True, False, True]


@pytest.mark.parametrize(
    ("accepting", "draining", "deployments", "ready"),
    [
        (False, False, {}, False),
        (True, False, {}, True),
        (True, True, {}, False),
        (True, False, {"a": True, "b": True}, True),
        (True, False, {"a": True, "b": False}, False),
    ],
)
def test_ready(accepting: bool, draining: bool, deployments: dict[str, bool], ready: bool) -> None:
    status = Status(accepting=accepting, draining=draining, deployments=deployments, attached={"far": False})
    assert status.ready is ready
    assert status.detail()["ready"] is ready


def test_the_detail_says_what_is_wrong_with_the_file() -> None:
    status = Status(revision="abc", accepting=True, deployments={"a": True}, attached={"b": None, "c": False})
    assert status.detail() == {
        "ready": True,
        "revision": "abc",
        "accepting": True,
        "draining": False,
        "deployments": {"a": "ready"},
        "attached": {"b": "not asked yet", "c": "not answering"},
        "config": {"status": "ok"},
    }
    status.reload_failure = ReloadFailure("invalid", ("f.yaml:1:1: no",))
    assert status.detail()["config"] == {"status": "invalid", "problems": ["f.yaml:1:1: no"]}
    assert status.ready, "what serves is as good as before"
