"""The phase machine as playbooks: what Envoy sends, and what it is told."""

from __future__ import annotations

from typing import Any

import pytest

from router.gateway.commands import Command, Decide, Finish, Send, Status
from router.gateway.machine import StreamMachine
from router.gateway.options import MachineOptions
from router.gateway.proto.ext_proc_pb2 import ProcessingMode, ProcessingRequest, ProcessingResponse
from router.gateway.replies import CHUNK_BYTES
from router.verdict import Fault, Forward, HeadVerdict
from router.wire.http import Reply
from tests.support.gateway import (
    BUFFERED,
    DUPLEX,
    FORWARD,
    NONE,
    FakeHandler,
    body,
    headers,
    phases,
    protocol,
    response_body,
    response_headers,
    response_trailers,
    sent,
    set_headers,
    streamed,
    trailers,
)

STAY = MachineOptions(finish_after_verdict=False)
REFUSAL = Reply(529, {"retry-after": "2", "x-vsr-selected-recipe": "r"}, b'{"type":"error"}')


def play(
    *messages: ProcessingRequest,
    handler: FakeHandler | None = None,
    options: MachineOptions = MachineOptions(),  # noqa: B008 - frozen
    end: bool = False,
) -> list[Command]:
    """Everything the machine commands; a Decide is answered at once with the handler's verdict."""
    handler = handler or FakeHandler()
    machine = StreamMachine(handler, options)
    out: list[Command] = []
    for message in messages:
        commands = list(machine.feed(message.SerializeToString()))
        out += commands
        if commands and isinstance(commands[-1], Decide):
            handler.bodies.append(commands[-1].body)
            assert not isinstance(handler.verdict, Exception)
            out += machine.decided(handler.verdict)
    if end:
        out += machine.ended()
    return out


HEAD, BODY, TRAIL = "request_headers", "request_body", "request_trailers"
R_HEAD, R_BODY, R_TRAIL = "response_headers", "response_body", "response_trailers"

PLAYBOOKS: dict[str, tuple[list[ProcessingRequest], MachineOptions, list[str]]] = {
    "buffered": (
        [headers(mode=protocol(BUFFERED)), body(b"{}")],
        MachineOptions(),
        [HEAD, "Decide", BODY, "OK"],
    ),
    "buffered, mode not said": ([headers(), body(b"{}")], MachineOptions(), [HEAD, "Decide", BODY, "OK"]),
    "buffered before trailers: the body has no end of stream": (
        [headers(mode=protocol(BUFFERED)), body(b"{}", eos=False), trailers()],
        STAY,
        [HEAD, "Decide", BODY, TRAIL, "OK"],
    ),
    "buffered with a response phase": (
        [headers(), body(b"{}"), response_headers(), response_body(b"a"), response_trailers()],
        STAY,
        [HEAD, "Decide", BODY, R_HEAD, R_BODY, R_TRAIL, "OK"],
    ),
    "full duplex": (
        [headers(mode=protocol(DUPLEX)), body(b"{", eos=False), body(b"}")],
        MachineOptions(),
        ["Decide", HEAD, BODY, "OK"],
    ),
    "full duplex, configured and not said": (
        [headers(), body(b"{", eos=False), body(b"}")],
        MachineOptions(request_body_mode=DUPLEX),
        ["Decide", HEAD, BODY, "OK"],
    ),
    "full duplex ended by an empty chunk": (
        [headers(mode=protocol(DUPLEX)), body(b"{}", eos=False), body(b"")],
        MachineOptions(),
        ["Decide", HEAD, BODY, "OK"],
    ),
    "full duplex ended by trailers": (
        [headers(mode=protocol(DUPLEX)), body(b"{}", eos=False), trailers()],
        MachineOptions(),
        ["Decide", HEAD, BODY, TRAIL, "OK"],
    ),
    "full duplex, last chunk twice": (
        [headers(mode=protocol(DUPLEX)), body(b"{", eos=False), body(b"}"), body(b"}")],
        STAY,
        ["Decide", HEAD, BODY, "OK"],
    ),
    "not ours, buffered": (
        [headers(path="/healthz", mode=protocol(BUFFERED))],
        MachineOptions(),
        [HEAD, "OK"],
    ),
    "not ours, buffered, staying": (
        [headers(path="/healthz"), body(b"x"), body(b"x"), response_headers()],
        STAY,
        [HEAD, BODY, R_HEAD, "OK"],
    ),
    "not ours, full duplex, without a body": (
        [headers(path="/healthz", mode=protocol(DUPLEX), eos=True)],
        MachineOptions(),
        [HEAD, "OK"],
    ),
    "not ours, full duplex, chunk by chunk": (
        [headers(path="/up", mode=protocol(DUPLEX)), body(b"a", eos=False), body(b"b"), body(b"b")],
        STAY,
        [HEAD, BODY, BODY, "OK"],
    ),
    "not ours, full duplex, trailers": (
        [headers(path="/up", mode=protocol(DUPLEX)), body(b"a", eos=False), trailers()],
        MachineOptions(),
        [HEAD, BODY, TRAIL, "OK"],
    ),
    "no early leave from a full duplex response": (
        [headers(mode=protocol(BUFFERED, DUPLEX)), body(b"{}"), response_headers(), response_body(b"a")],
        MachineOptions(),
        [HEAD, "Decide", BODY, R_HEAD, R_BODY, "OK"],
    ),
    "not ours, no early leave from a full duplex response": (
        [headers(path="/up", mode=protocol(NONE, DUPLEX)), response_body(b"a")],
        MachineOptions(),
        [HEAD, R_BODY, "OK"],
    ),
    "only the response phases": (
        [response_headers(protocol(BUFFERED)), response_body(b"x"), response_trailers()],
        MachineOptions(),
        [R_HEAD, R_BODY, R_TRAIL, "OK"],
    ),
    "response phases out of order and repeated": (
        [response_trailers(), response_headers(), response_headers(), response_body(b"x"), response_body(b"x")],
        MachineOptions(),
        [R_TRAIL, R_HEAD, R_BODY, "OK"],
    ),
    "response streamed": (
        [response_headers(protocol(NONE, ProcessingMode.STREAMED)), response_body(b"x", False), response_body(b"y")],
        MachineOptions(),
        [R_HEAD, R_BODY, R_BODY, "OK"],
    ),
    "headers without a body": ([headers(eos=True)], MachineOptions(), ["immediate_response", "OK"]),
    "an empty body": ([headers(), body(b"")], MachineOptions(), [HEAD, "immediate_response", "OK"]),
    "trailers and no body": ([headers(), trailers()], MachineOptions(), [HEAD, "immediate_response", "OK"]),
    "nothing at all": ([], MachineOptions(), ["ABORTED"]),
    "headers and no body": ([headers()], MachineOptions(), [HEAD, "ABORTED"]),
    "a body that never ends": (
        [headers(mode=protocol(DUPLEX)), body(b"{", eos=False)],
        MachineOptions(),
        ["ABORTED"],
    ),
    "response before a decision": (
        [headers(mode=protocol(DUPLEX)), response_headers()],
        MachineOptions(),
        [R_HEAD, "ABORTED"],
    ),
    "no headers message": ([body(b"{}")], MachineOptions(), ["FAILED_PRECONDITION"]),
    "trailers first": ([trailers()], MachineOptions(), ["FAILED_PRECONDITION"]),
    "headers twice before a decision": ([headers(), headers()], MachineOptions(), [HEAD, "INVALID_ARGUMENT"]),
    "headers twice after it": ([headers(), body(b"{}"), headers()], STAY, [HEAD, "Decide", BODY, "OK"]),
    "trailers twice": (
        [headers(mode=protocol(DUPLEX)), body(b"{}", eos=False), trailers(), trailers()],
        STAY,
        ["Decide", HEAD, BODY, TRAIL, "OK"],
    ),
    "streamed where it should be buffered": (
        [headers(mode=protocol(ProcessingMode.STREAMED))],
        MachineOptions(),
        ["FAILED_PRECONDITION"],
    ),
    "no body asked and no override": ([headers(mode=protocol(NONE))], MachineOptions(), ["FAILED_PRECONDITION"]),
    "no body asked, override": (
        [headers(mode=protocol(NONE)), body(b"{}")],
        MachineOptions(allow_mode_override=True),
        [HEAD, "Decide", BODY, "OK"],
    ),
    "an override that Envoy would ignore": (
        [headers(mode=protocol(NONE, early=True))],
        MachineOptions(allow_mode_override=True),
        ["FAILED_PRECONDITION"],
    ),
    "a buffered body in two pieces": (
        [headers(), body(b"{", eos=False), body(b"}")],
        STAY,
        [HEAD, "Decide", BODY, "INVALID_ARGUMENT"],
    ),
    "a message without a phase": ([headers(), ProcessingRequest()], MachineOptions(), [HEAD, "INVALID_ARGUMENT"]),
    "observability mode": (
        [ProcessingRequest(request_headers=headers().request_headers, observability_mode=True)],
        MachineOptions(),
        ["FAILED_PRECONDITION"],
    ),
}


@pytest.mark.parametrize(("messages", "options", "expected"), PLAYBOOKS.values(), ids=PLAYBOOKS.keys())
def test_playbook(messages: list[ProcessingRequest], options: MachineOptions, expected: list[str]) -> None:
    assert phases(play(*messages, options=options, end=True)) == expected


def only(response: list[ProcessingResponse], phase: str) -> Any:
    (found,) = (getattr(one, phase) for one in response if one.WhichOneof("response") == phase)
    return found


def test_the_handler_gets_head_and_body() -> None:
    handler = FakeHandler()
    sent_headers = ("X-Two", "1"), ("x-two", "2"), ("x-bytes", b"\xff\xe9"), ("content-length", "3")
    play(headers(*sent_headers), body(b"\x00{}"), handler=handler)
    (head,) = handler.heads
    assert (head.method, head.path) == ("POST", "/v1/chat/completions")
    assert head.headers == {"host": "api.test", "x-two": "1, 2", "x-bytes": "ÿé", "content-length": "3"}
    assert handler.bodies == [b"\x00{}"]


def test_buffered_verdict() -> None:
    responses = sent(play(headers(), body(b"{}")))
    assert responses[0] == ProcessingResponse(request_headers={})
    common = only(responses, BODY).response
    assert set_headers(common.header_mutation) == FORWARD.set_headers
    assert list(common.header_mutation.remove_headers) == ["authorization"]
    assert common.clear_route_cache
    assert common.body_mutation.WhichOneof("mutation") is None
    assert responses[-1].dynamic_metadata["pointsman"] == {"recipe": "default"}


def test_a_changed_buffered_body_brings_its_length_in_bytes() -> None:
    changed = Forward("m", {"Content-Length": "7"}, ("content-length", "content-encoding"), "né".encode())
    responses = sent(play(headers(), body(b"{}"), handler=FakeHandler(verdict=changed)))
    common = only(responses, BODY).response
    assert common.body_mutation.body == b"n\xc3\xa9"
    assert set_headers(common.header_mutation) == {"content-length": "3"}
    assert list(common.header_mutation.remove_headers) == ["content-encoding"]


def test_a_body_may_become_empty() -> None:
    responses = sent(play(headers(), body(b"{}"), handler=FakeHandler(verdict=Forward("m", body=b""))))
    common = only(responses, BODY).response
    assert common.body_mutation.WhichOneof("mutation") == "body"
    assert set_headers(common.header_mutation) == {"content-length": "0"}


def test_full_duplex_verdict_routes_in_the_headers_answer() -> None:
    original = bytes(range(256)) * 700
    messages = [headers(mode=protocol(DUPLEX)), body(original[:70_000], eos=False), body(original[70_000:])]
    responses = sent(play(*messages))
    assert [response.WhichOneof("response") for response in responses] == [HEAD, BODY, BODY, BODY]
    common = responses[0].request_headers.response
    assert set_headers(common.header_mutation) == FORWARD.set_headers
    assert common.clear_route_cache
    assert responses[0].dynamic_metadata["pointsman"] == {"recipe": "default"}
    assert streamed(responses) == (original, [False, False, True])
    assert all(len(response.request_body.response.body_mutation.streamed_response.body) <= CHUNK_BYTES
               for response in responses[1:])  # fmt: skip


def test_full_duplex_never_sets_a_length() -> None:
    changed = Forward("m", {"content-length": "3"}, (), b"new")
    responses = sent(play(headers(mode=protocol(DUPLEX)), body(b"{}"), handler=FakeHandler(verdict=changed)))
    mutation = responses[0].request_headers.response.header_mutation
    assert set_headers(mutation) == {}
    assert list(mutation.remove_headers) == ["content-length"]
    assert streamed(responses) == (b"new", [True])


def test_trailers_after_a_full_duplex_body_take_its_end_of_stream() -> None:
    responses = sent(play(headers(mode=protocol(DUPLEX)), body(b"{}", eos=False), trailers()))
    assert streamed(responses) == (b"{}", [False])
    assert responses[-1] == ProcessingResponse(request_trailers={})


OWNED = [("x-selected-model", "evil"), ("X-VSR-Destination", "b"), ("x_vsr_a", "1"), ("x-selected_model", "2")]
STRIPPED = ["x-selected-model", "x-vsr-destination", "x_vsr_a", "x-selected_model"]


def test_what_only_the_router_may_say_is_removed_from_a_buffered_request() -> None:
    common = sent(play(headers(*OWNED), body(b"{}")))[0].request_headers.response
    assert list(common.header_mutation.remove_headers) == STRIPPED
    assert common.clear_route_cache  # the client's header may have chosen the route already


def test_in_full_duplex_it_is_removed_unless_it_is_set() -> None:
    common = sent(play(headers(*OWNED, mode=protocol(DUPLEX)), body(b"{}")))[0].request_headers.response
    assert set_headers(common.header_mutation) == FORWARD.set_headers
    assert list(common.header_mutation.remove_headers) == ["x_vsr_a", "x-selected_model", "authorization"]


@pytest.mark.parametrize("mode", [BUFFERED, DUPLEX, NONE])
def test_it_is_removed_from_requests_that_are_not_ours(mode: ProcessingMode.BodySendMode) -> None:
    common = sent(play(headers(*OWNED, path="/other", mode=protocol(mode))))[0].request_headers.response
    assert list(common.header_mutation.remove_headers) == STRIPPED
    assert common.clear_route_cache


@pytest.mark.parametrize("name", ["x-vsrx", "x-selected-models", "x-vsr", "selected-model", "x-request-id"])
def test_other_headers_stay(name: str) -> None:
    responses = sent(play(headers((name, "1"), path="/other")))
    assert responses == [ProcessingResponse(request_headers={})]


@pytest.mark.parametrize("mode", [BUFFERED, NONE])
def test_requests_that_are_not_ours_ask_for_nothing_more(mode: ProcessingMode.BodySendMode) -> None:
    options = MachineOptions(allow_mode_override=True, finish_after_verdict=False)
    (response,) = sent(play(headers(path="/other", mode=protocol(mode)), options=options))
    assert response.mode_override.request_body_mode == NONE
    assert response.mode_override.response_header_mode == ProcessingMode.SKIP


def test_no_override_in_full_duplex_where_chunks_may_be_on_their_way() -> None:
    options = MachineOptions(allow_mode_override=True, finish_after_verdict=False)
    (response,) = sent(play(headers(path="/other", mode=protocol(DUPLEX)), options=options))
    assert not response.HasField("mode_override")


def test_a_body_is_asked_for_where_the_filter_sends_none() -> None:
    options = MachineOptions(allow_mode_override=True)
    messages = [headers(mode=protocol(NONE, ProcessingMode.STREAMED)), body(b"{}")]
    response = sent(play(*messages, options=options))[0]
    assert response.mode_override.request_body_mode == BUFFERED
    assert response.mode_override.response_body_mode == ProcessingMode.STREAMED


@pytest.mark.parametrize("mode", [BUFFERED, DUPLEX])
def test_a_refusal_reaches_the_client_whole(mode: ProcessingMode.BodySendMode) -> None:
    commands = play(headers(mode=protocol(mode)), body(b"{}"), handler=FakeHandler(verdict=REFUSAL))
    assert commands[-1] == Finish(Status.OK)
    answer = only(sent(commands), "immediate_response")
    assert (answer.status.code, answer.body) == (529, REFUSAL.body)
    assert set_headers(answer.headers) == REFUSAL.headers
    assert answer.details == "pointsman_reply"


def test_a_refusal_of_the_head_alone() -> None:
    handler = FakeHandler(on_paths={"/v1/models": Reply(200, {}, b"[]")})
    commands = play(headers(path="/v1/models", method="GET", eos=True), handler=handler)
    assert phases(commands) == ["immediate_response", "OK"]


@pytest.mark.parametrize("length", ["11", "0000000000000011", "9" * 5000])
def test_a_body_announced_too_large_is_refused_unread(length: str) -> None:
    handler = FakeHandler()
    options = MachineOptions(max_body_bytes=10)
    commands = play(headers(("content-length", length)), handler=handler, options=options)
    assert phases(commands) == ["immediate_response", "OK"]
    assert handler.faults == [Fault.BODY_TOO_LARGE]


@pytest.mark.parametrize("length", ["10", "-5", "1e9", "", "٩٩٩٩", "10, 10"])
def test_other_lengths_announce_nothing(length: str) -> None:
    commands = play(headers(("content-length", length)), options=MachineOptions(max_body_bytes=10))
    assert phases(commands) == [HEAD]


def test_a_body_that_grows_too_large_is_refused_at_once() -> None:
    handler = FakeHandler()
    pieces = [body(b"12345", eos=False)] * 4
    commands = play(headers(mode=protocol(DUPLEX)), *pieces, handler=handler, options=MachineOptions(max_body_bytes=14))
    assert phases(commands) == ["immediate_response", "OK"]
    assert handler.faults == [Fault.BODY_TOO_LARGE]
    assert handler.bodies == []


@pytest.mark.parametrize("fault", [Fault.INTERNAL, Fault.DEADLINE])
def test_a_decision_that_fails_is_answered_by_the_handlers_fault(fault: Fault) -> None:
    handler = FakeHandler()
    machine = StreamMachine(handler, MachineOptions())
    list(machine.receive(headers()))
    list(machine.receive(body(b"{}")))
    assert phases(machine.failed(fault)) == ["immediate_response", "OK"]
    assert handler.faults == [fault]
    assert list(machine.failed(fault)) == list(machine.decided(FORWARD)) == list(machine.ended()) == []


def test_a_handler_that_raises_on_the_head() -> None:
    raised: list[Exception] = []
    handler = FakeHandler(on_paths={"/v1/x": ValueError("secret")})
    machine = StreamMachine(handler, MachineOptions(), raised.append)
    assert phases(machine.receive(headers(path="/v1/x"))) == ["immediate_response", "OK"]
    assert handler.faults == [Fault.INTERNAL]
    assert [type(error) for error in raised] == [ValueError]


class Mute(FakeHandler):
    """Cannot even say what is wrong."""

    def fault(self, head: object, fault: Fault) -> Reply:
        raise RuntimeError("secret")


def test_without_any_answer_the_stream_ends_with_an_error() -> None:
    raised: list[Exception] = []
    machine = StreamMachine(Mute(), MachineOptions(), raised.append)
    (finish,) = machine.receive(headers(eos=True))
    assert finish == Finish(Status.INTERNAL, "the handler gave no answer that can be sent")
    assert len(raised) == 1


@pytest.mark.parametrize("verdict", [None, "pass", Forward("m", {"x-a": 3}), Reply("x", {}, b"")])  # type: ignore[dict-item,arg-type]
def test_verdicts_that_cannot_be_sent_end_the_stream_with_an_error(verdict: Any) -> None:
    commands = play(headers(), body(b"{}"), handler=FakeHandler(verdict=verdict), end=True)
    assert phases(commands) == [HEAD, "Decide", "INTERNAL"]


def test_a_head_verdict_of_no_kind_is_a_fault() -> None:
    handler = FakeHandler(on_paths={"/v1/x": None})  # type: ignore[dict-item]
    assert phases(play(headers(path="/v1/x"), handler=handler)) == ["immediate_response", "OK"]
    assert handler.faults == [Fault.INTERNAL]


def test_header_values_cannot_break_out_of_their_line() -> None:
    verdict = Forward("m", {"x-vsr-a": "one\r\nx-evil: 1\x00", "x-vsr-b": "é\ud800"}, metadata={"k": "a\nb\udfff"})
    responses = sent(play(headers(), body(b"{}"), handler=FakeHandler(verdict=verdict)))
    mutation = only(responses, BODY).response.header_mutation
    assert set_headers(mutation) == {"x-vsr-a": "one  x-evil: 1 ", "x-vsr-b": "é "}
    assert responses[-1].dynamic_metadata["pointsman"] == {"k": "a b "}


def test_an_empty_header_value_is_kept() -> None:
    responses = sent(play(headers(), body(b"{}"), handler=FakeHandler(verdict=Forward("m", {"x-vsr-a": ""}))))
    (option,) = only(responses, BODY).response.header_mutation.set_headers
    assert option.keep_empty_value


def test_a_full_duplex_response_is_sent_back_byte_for_byte() -> None:
    mode = protocol(NONE, DUPLEX)
    pieces = [bytes([number]) * 50_000 for number in range(3)]
    messages = [response_body(piece, eos=False) for piece in pieces]
    commands = play(response_headers(mode), *messages, response_body(b""), response_body(b""), end=True)
    whole, ends = streamed(sent(commands), R_BODY)
    assert whole == b"".join(pieces)
    assert ends == [False] * 3 + [True]


def test_the_clear_route_cache_switch() -> None:
    responses = sent(play(headers(), body(b"{}"), options=MachineOptions(clear_route_cache=False)))
    assert not only(responses, BODY).response.clear_route_cache


def test_repetitions_are_counted() -> None:
    machine = StreamMachine(FakeHandler(), STAY)
    for message in (headers(), body(b"{}")):
        list(machine.receive(message))
    list(machine.decided(FORWARD))
    for message in (body(b"{}"), response_headers(), response_headers()):
        list(machine.receive(message))
    assert machine.ignored == 2


def test_chunks_that_come_during_the_decision() -> None:
    machine = StreamMachine(FakeHandler(), STAY)
    for message in (headers(mode=protocol(DUPLEX)), body(b"{}")):
        list(machine.receive(message))
    assert list(machine.receive(body(b"{}"))) == []
    assert phases(machine.decided(FORWARD)) == [HEAD, BODY]


def test_trailers_that_come_during_the_decision_are_answered_after_it() -> None:
    machine = StreamMachine(FakeHandler(), STAY)
    for message in (headers(), body(b"{}", eos=False)):
        list(machine.receive(message))
    assert list(machine.receive(trailers())) == []
    assert phases(machine.decided(FORWARD)) == [BODY, TRAIL]


def test_bytes_that_are_no_message() -> None:
    machine = StreamMachine(FakeHandler(), MachineOptions())
    assert phases(machine.feed(b"\xff\xff\xff")) == ["INVALID_ARGUMENT"]
    assert list(machine.feed(headers().SerializeToString())) == []


def test_pass_through_is_settled_by_its_headers_answer() -> None:
    handler = FakeHandler(on_paths={"/v1/x": HeadVerdict.PASS_THROUGH})
    commands = play(headers(path="/v1/x"), handler=handler, options=STAY, end=True)
    assert isinstance(commands[0], Send)
    assert phases(commands) == [HEAD, "OK"]
