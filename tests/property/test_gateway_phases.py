"""The phase machine under any order of phases, any chunking, any body mode, and peers that make no sense."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from router.gateway.commands import Command, Decide, Finish, Send, Status
from router.gateway.heads import is_router_owned
from router.gateway.machine import StreamMachine
from router.gateway.openings import Openings
from router.gateway.options import MachineOptions
from router.gateway.proto.ext_proc_pb2 import ProcessingMode, ProcessingRequest, ProcessingResponse
from router.gateway.replies import CHUNK_BYTES, Direction, streamed_body
from router.verdict import Fault, Forward
from router.wire.http import Reply
from tests.support.gateway import (
    BUFFERED,
    DUPLEX,
    FORWARD,
    FakeHandler,
    body,
    header_map,
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

REFUSAL = Reply(529, {"retry-after": "2"}, b"{}")
MODES = list(ProcessingMode.BodySendMode.values())
NEVER = 4  # as a delay: no answer of the handler at all
ONCE = ("request_headers", "request_trailers", "response_headers", "response_trailers", "immediate_response")

working = [BUFFERED, DUPLEX]
options = st.builds(
    MachineOptions,
    max_body_bytes=st.sampled_from([5, 1000, 1000]),
    request_body_mode=st.sampled_from(working),
    response_body_mode=st.sampled_from(MODES),
    allow_mode_override=st.booleans(),
    clear_route_cache=st.booleans(),
    finish_after_verdict=st.booleans(),
)
verdicts = st.sampled_from([FORWARD, Forward("m", body=b"changed"), REFUSAL, None, ValueError()])
working_modes = st.none() | st.builds(protocol, st.sampled_from(working), st.sampled_from(MODES))
modes = working_modes | st.builds(protocol, st.sampled_from(MODES), st.sampled_from(MODES), st.booleans())
small = st.binary(max_size=4)
paths = st.sampled_from(["/v1/chat/completions", "/v1/messages", "/other"])
first = st.builds(headers, path=paths, mode=modes, eos=st.sampled_from([False, False, True]))
later = st.one_of(
    st.builds(body, small, st.booleans()),
    st.builds(body, st.binary(min_size=1, max_size=3), st.booleans()),
    st.builds(trailers),
    st.builds(response_headers, modes),
    st.builds(response_body, small, st.booleans()),
    st.builds(response_trailers),
    first,
)
nonsense = st.sampled_from(
    [
        ProcessingRequest(),
        ProcessingRequest(protocol_config=protocol(DUPLEX)),
        ProcessingRequest(observability_mode=True),
    ]
)
ours = st.builds(headers, mode=working_modes)
streams = st.one_of(
    st.tuples(ours, st.lists(later, min_size=2, max_size=8)).map(lambda parts: [parts[0], *parts[1]]),
    st.tuples(ours, st.lists(later, min_size=1, max_size=4)).map(lambda parts: [parts[0], *parts[1]]),
    st.tuples(first, st.lists(later, max_size=7)).map(lambda parts: [parts[0], *parts[1]]),
    st.lists(later, max_size=6),
    st.lists(later | nonsense, max_size=5),
).map(lambda stream: [message.SerializeToString() for message in stream])


@dataclass
class Peer:
    """Carries out commands, and notes what a stream came to."""

    machine: StreamMachine
    commands: list[Command] = field(default_factory=list)
    decide: Decide | None = None

    def take(self, commands: Iterable[Command]) -> None:
        for command in commands:
            assert not any(isinstance(earlier, Finish) for earlier in self.commands), "a command after the end"
            self.commands.append(command)
            if isinstance(command, Decide):
                self.decide = command

    def answer(self, verdict: object) -> None:
        if self.decide is None:
            return
        self.decide = None
        if isinstance(verdict, Exception):
            self.take(self.machine.failed(Fault.INTERNAL))
        else:
            self.take(self.machine.decided(verdict))  # type: ignore[arg-type]

    def check(self) -> None:
        words = phases(self.commands)
        for phase in ONCE:
            assert words.count(phase) <= 1, words
        assert words.count("Decide") <= 1
        finish = self.commands[-1]
        assert isinstance(finish, Finish)
        if finish.status is Status.OK:
            assert self.settled(words), words

    def settled(self, words: list[str]) -> bool:
        """Whether Envoy has been told the request's fate: refused, decided, or none of ours."""
        if "immediate_response" in words:
            return True
        if "Decide" in words:
            return "request_headers" in words and "request_body" in words
        heads = self.machine._request._handler.heads  # type: ignore[attr-defined]
        if not heads:  # nothing of a request came
            return not any(word.startswith("request_") for word in words)
        return not heads[0].path.startswith("/v1/") and "request_headers" in words


OPENINGS = Openings()
"""Shared by all, as the streams of a server share them: what one began with must not change what another says."""


def run(data: Iterable[bytes], verdict: object, settings: MachineOptions, delay: int) -> Peer:
    peer = Peer(StreamMachine(FakeHandler(), settings, openings=OPENINGS))
    wait = delay
    for one in data:
        peer.take(peer.machine.feed(one))
        if peer.decide is not None:
            wait -= 1
            if wait < 0:
                peer.answer(verdict)
    if delay < NEVER:
        peer.answer(verdict)
    peer.take(peer.machine.ended())
    peer.check()
    return peer


@settings(max_examples=400, deadline=None)
@given(streams, verdicts, options, st.integers(0, NEVER))
def test_any_order_of_phases(data: list[bytes], verdict: object, settings: MachineOptions, delay: int) -> None:
    run(data, verdict, settings, delay)


@settings(max_examples=300, deadline=None)
@given(streams, st.binary(max_size=40), st.integers(0, 7), verdicts, options)
def test_hostile_bytes(data: list[bytes], noise: bytes, where: int, verdict: object, settings: MachineOptions) -> None:
    run([*data[:where], noise, *data[where:]], verdict, settings, 0)


@settings(max_examples=300, deadline=None)
@given(st.data(), streams, verdicts, options)
def test_damaged_messages(data: st.DataObject, whole: list[bytes], verdict: object, settings: MachineOptions) -> None:
    def damaged() -> Iterator[bytes]:
        for one in whole:
            raw = bytearray(one)
            for _ in range(data.draw(st.integers(0, 2))):
                if raw:
                    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
            yield bytes(raw[: data.draw(st.integers(0, len(raw)))])

    run(damaged(), verdict, settings, 0)


def chunked(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


sizes = st.sampled_from([1, 100, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES])
cuts = st.lists(st.integers(0, 1 << 20), max_size=5)


@settings(max_examples=60, deadline=None)
@given(sizes, cuts, st.booleans(), st.booleans(), st.booleans(), st.sampled_from(["/v1/messages", "/other"]))
def test_full_duplex_bodies_are_identical(
    size: int, where: list[int], with_trailers: bool, repeat: bool, stay: bool, path: str
) -> None:
    original = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    pieces = chunked(original, where)
    data = [headers(path=path, mode=protocol(DUPLEX))]
    data += [body(piece, eos=False) for piece in pieces[:-1]]
    data.append(body(pieces[-1], eos=not with_trailers))
    if with_trailers:
        data.append(trailers())
    if repeat and not with_trailers:
        data.append(data[-1])
    verdict = Forward("m")
    peer = run(
        [message.SerializeToString() for message in data], verdict, MachineOptions(finish_after_verdict=not stay), 0
    )
    responses = sent(peer.commands)
    whole, ends = streamed(responses)
    assert whole == original
    assert sum(ends) == (0 if with_trailers else 1)
    assert ends[-1] is not with_trailers
    order = [response.WhichOneof("response") for response in responses]
    assert order[0] == "request_headers"
    assert order[-1] == ("request_trailers" if with_trailers else "request_body")
    assert phases(peer.commands)[-1] == "OK"


@settings(max_examples=60, deadline=None)
@given(st.binary(min_size=1, max_size=300), st.booleans(), st.none() | st.binary(max_size=300))
def test_buffered_bodies_pass_untouched_or_with_their_length(data: bytes, eos: bool, changed: bytes | None) -> None:
    stream = [headers(mode=protocol(BUFFERED)), body(data, eos)]
    peer = run([one.SerializeToString() for one in stream], Forward("m", body=changed), MachineOptions(), 0)
    assert next(command.body for command in peer.commands if isinstance(command, Decide)) == data
    common = sent(peer.commands)[-1].request_body.response
    if changed is None:
        assert not common.HasField("body_mutation")
    else:
        assert common.body_mutation.body == changed
        assert set_headers(common.header_mutation) == {"content-length": str(len(changed))}


@given(st.binary(max_size=100), st.booleans(), st.sampled_from(Direction))
@settings(max_examples=60, deadline=None)
def test_pieces_written_by_hand_are_what_protobuf_writes(data: bytes, eos: bool, direction: Direction) -> None:
    (raw,) = streamed_body(direction, data, end_of_stream=eos)
    response = ProcessingResponse()
    answer = response.request_body if direction is Direction.REQUEST else response.response_body
    piece = answer.response.body_mutation.streamed_response
    piece.SetInParent()
    piece.body, piece.end_of_stream = data, eos
    assert ProcessingResponse.FromString(raw) == response


names = st.text("xX-_vsrVSRselctdmo", min_size=1, max_size=18) | st.sampled_from(
    ["x-vsr-a", "X_VSR_a", "x-selected-model", "X_Selected-Model", "host"]
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(names, st.binary(max_size=6)), max_size=6),
    st.sampled_from(["/v1/messages", "/other"]),
    st.sampled_from([BUFFERED, DUPLEX]),
)
def test_no_header_of_the_routers_own_gets_past(
    sent_by_client: list[tuple[str, bytes]], path: str, mode: ProcessingMode.BodySendMode
) -> None:
    first = headers(path=path, mode=protocol(mode))
    first.request_headers.headers.headers.extend(header_map(sent_by_client).headers)
    stream = [first.SerializeToString(), body(b"{}").SerializeToString()]
    peer = run(stream, FORWARD, MachineOptions(), 0)
    mutation = sent(peer.commands)[0].request_headers.response.header_mutation
    gone = {*mutation.remove_headers, *set_headers(mutation)}
    for name, _ in sent_by_client:
        assert not is_router_owned(name) or name.lower() in gone
    assert isinstance(peer.commands[0], Send | Decide)
