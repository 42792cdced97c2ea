"""Whoever watches an answer is told of it, and never in its way."""

from __future__ import annotations

import pytest

from router.gateway.commands import Finish, Send, Status
from router.gateway.machine import StreamMachine
from router.gateway.options import MachineOptions
from router.gateway.proto.ext_proc_pb2 import HttpHeaders, ProcessingMode, ProcessingRequest
from router.verdict import Forward
from router.wire.http import Reply
from tests.support.gateway import FakeHandler, Watch, body, header_map, headers, response_body, response_headers, sent

OVERRIDING = MachineOptions(allow_mode_override=True)


def machine_of(watch: Watch | None, options: MachineOptions = OVERRIDING) -> StreamMachine:
    """A machine whose request is on its way."""
    machine = decided_late(options)
    commands = list(machine.decided(Forward("m", watch=watch)))
    assert isinstance(commands[0], Send)
    assert (len(commands) == 1) is (watch is not None)
    return machine


def decided_late(options: MachineOptions = OVERRIDING) -> StreamMachine:
    machine = StreamMachine(FakeHandler(), options)
    list(machine.receive(headers()))
    list(machine.receive(body(b"{}")))
    return machine


def test_without_a_watch_the_stream_ends_with_the_verdict() -> None:
    machine = machine_of(None)
    machine.over()
    assert machine.receive(response_headers()) == ()


def test_headers_are_told_and_left_alone() -> None:
    watch = Watch()
    machine = machine_of(watch)
    (answer,) = sent(machine.receive(response_headers()))
    assert answer.WhichOneof("response") == "response_headers"
    assert not answer.HasField("mode_override")
    assert list(machine.ended()) == [Finish(Status.OK)]
    machine.over()
    machine.over()
    assert watch.told == ["sent", (200, {}), "over"]


def test_a_body_comes_only_where_it_is_wanted() -> None:
    watch = Watch(wants=True)
    machine = machine_of(watch)
    (answer,) = sent(machine.receive(response_headers()))
    assert answer.mode_override.response_body_mode == ProcessingMode.STREAMED
    for piece, last in ((b"a", False), (b"b", True)):
        (answer,) = sent(machine.receive(response_body(piece, eos=last)))
        assert answer.WhichOneof("response") == "response_body"
    assert watch.told == ["sent", (200, {}), (b"a", False), (b"b", True)]


def test_a_proxy_that_takes_no_overrides_is_asked_for_no_body() -> None:
    (answer,) = sent(machine_of(Watch(wants=True), MachineOptions()).receive(response_headers()))
    assert not answer.HasField("mode_override")


def test_an_answer_of_headers_alone_is_whole() -> None:
    watch = Watch(wants=True)
    message = ProcessingRequest(
        response_headers=HttpHeaders(headers=header_map([(":status", "204"), ("X-A", "1")]), end_of_stream=True)
    )
    (answer,) = sent(machine_of(watch).receive(message))
    assert not answer.HasField("mode_override")
    assert watch.told == ["sent", (204, {"x-a": "1"}), (b"", True)]


def test_a_watch_that_breaks_breaks_nothing() -> None:
    watch = Watch(wants=True, breaks=True)
    machine = machine_of(watch)
    assert len(sent(machine.receive(response_headers()))) == 1
    assert len(sent(machine.receive(response_body(b"a")))) == 1
    machine.over()
    assert watch.told[-1] == "over"


def test_a_process_that_ends_lets_go_of_answers() -> None:
    watch = Watch()
    machine = machine_of(watch)
    assert list(machine.release()) == [Finish(Status.OK)]
    assert list(machine.release()) == []
    machine.over()
    assert watch.told == ["sent", "left"]


def test_a_process_that_ends_watches_nothing_that_is_decided_later() -> None:
    watch, machine = Watch(), decided_late()
    assert list(machine.release()) == []
    assert list(machine.decided(Forward("m", watch=watch)))[-1] == Finish(Status.OK)
    machine.over()
    assert watch.told == []


@pytest.mark.parametrize("verdict", [Reply(200, {}, b""), None])
def test_what_is_not_forwarded_is_not_watched(verdict: Reply | None) -> None:
    machine = decided_late()
    if verdict is not None:
        list(machine.decided(verdict))
    machine.over()
    assert list(machine.decided(Forward("m", watch=(watch := Watch())))) == [] or verdict is None
    assert "over" not in watch.told
