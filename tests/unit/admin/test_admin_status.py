from __future__ import annotations

import pytest

from router.admin.status import ReloadFailure, Status


class TestLive:
    def test_until_the_first_beat_a_start_is_left_alone(self) -> None:
        assert Status(clock=lambda: 1e9).live

    def test_a_hung_loop_is_not_ready_either(self) -> None:
        now = 0.0
        status = Status(clock=lambda: now, accepting=True)
        status.beat()
        assert status.ready
        now = 60.0
        assert not status.ready

    @pytest.mark.parametrize(("silent", "live"), [(59.9, True), (60.0, False)])
    def test_a_loop_that_is_silent_for_too_long(self, silent: float, live: bool) -> None:
        times = iter([0.0, silent])
        status = Status(clock=lambda: next(times), stuck_after_s=60)
        status.beat()
        assert status.live is live


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
