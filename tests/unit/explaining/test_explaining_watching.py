"""Several who look at one request, and at its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from router.explaining.notes import Notes
from router.explaining.watching import Seen, telling, together, watched
from router.verdict import Forward
from router.wire.http import Head, Reply
from tests.support.plans import plan_of


class Watch:
    def __init__(self, wants: bool = False) -> None:
        self.wants = wants
        self.told: list[Any] = []

    def sent(self) -> None:
        self.told.append("sent")

    def headers(self, status: int, headers: Mapping[str, str]) -> bool:
        self.told.append(status)
        return self.wants

    def body(self, piece: bytes, *, last: bool) -> None:
        self.told.append((piece, last))

    def over(self, *, left: bool) -> None:
        self.told.append(left)


class Watcher:
    def __init__(self, found: Mapping[str, str] | Seen | Exception) -> None:
        self.found = found

    def seen(self, *request: object) -> Mapping[str, str] | Seen:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def test_an_answer_is_shown_to_all() -> None:
    one, other = Watch(), Watch(wants=True)
    both = together([one, other])
    assert both is not None
    both.sent()
    assert both.headers(200, {}) is True
    both.body(b"a", last=True)
    both.over(left=False)
    assert one.told == other.told == ["sent", 200, (b"a", True), False]


def test_one_needs_no_other() -> None:
    watch = Watch()
    assert together([watch]) is watch
    assert together([]) is None


def test_what_watchers_say_is_put_together() -> None:
    watch = Watch()
    watchers = [Watcher({"a": "1"}), Watcher(ValueError("broken")), Watcher(Seen({"b": "2"}, watch))]
    found = watched(watchers, plan_of(), Head("POST", "/"), b"", Notes())
    assert found == Seen({"a": "1", "b": "2"}, watch)


def test_who_watches_already_goes_on_watching() -> None:
    first, second = Watch(), Watch()
    verdict = telling(Forward("m", metadata={"a": "1"}, watch=first), Seen({"b": "2"}, second))
    assert isinstance(verdict, Forward)
    assert verdict.metadata == {"a": "1", "b": "2"}
    assert verdict.watch is not None
    verdict.watch.sent()
    assert first.told == second.told == ["sent"]
    unchanged = Forward("m")
    assert telling(unchanged, Seen({})) is unchanged


def test_an_answer_of_our_own_has_nobody_to_look_on() -> None:
    told = telling(Reply(200, {}, b""), Seen({"replay_id": "1"}, Watch()))
    assert isinstance(told, Reply)
    assert told.headers == {"x-vsr-replay-id": "1"}
