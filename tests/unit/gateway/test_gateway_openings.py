from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from router.gateway.openings import MOST, MOST_BYTES, Opening, Openings
from router.gateway.proto.ext_proc_pb2 import ProcessingRequest
from tests.support.gateway import BUFFERED, headers, protocol

_MARK = "\n\x0econtent-length\x1a"


def opening(*extra: tuple[str, str | bytes], eos: bool = False) -> ProcessingRequest:
    return headers(*extra, mode=protocol(BUFFERED), eos=eos)


def read(openings: Openings, message: ProcessingRequest) -> Opening:
    """As the machine does."""
    data = message.SerializeToString()
    known = openings.known(data)
    if known is None:
        known = Opening.of(message)
        openings.keep(data, known)
    return known


def test_the_same_message_is_read_once() -> None:
    openings, data = Openings(), opening(("a", "b")).SerializeToString()
    assert openings.known(data) is None
    first = Opening.of(ProcessingRequest.FromString(data))
    openings.keep(data, first)
    assert openings.known(data) is first
    assert openings.known(opening(("a", "c")).SerializeToString()) is None


def test_messages_that_differ_in_the_length_of_the_body_are_alike() -> None:
    openings = Openings()
    read(openings, opening(("content-length", "1024"), ("a", "b")))
    other = opening(("content-length", "2048"), ("a", "b"))
    known = openings.known(other.SerializeToString())
    assert known is not None
    assert known.head == Opening.of(other).head
    assert known.head.headers["content-length"] == "2048"


def test_a_length_that_is_told_twice_is_not_kept() -> None:
    openings = Openings()
    for lengths in (("1", "2"), ("1", "3")):
        message = opening(*(("content-length", length) for length in lengths))
        assert read(openings, message) == Opening.of(message)


@pytest.mark.parametrize("eos", [True, False])
def test_the_end_of_a_request_belongs_to_its_opening(eos: bool) -> None:
    openings = Openings()
    read(openings, opening(eos=not eos))
    assert read(openings, opening(eos=eos)).ended is eos


def test_long_messages_are_not_kept_and_neither_are_too_many() -> None:
    openings = Openings()
    long = opening(("a", "x" * MOST_BYTES)).SerializeToString()
    openings.keep(long, Opening.of(ProcessingRequest.FromString(long)))
    assert openings.known(long) is None
    for number in range(2 * MOST):
        read(openings, opening(("a", str(number))))
        assert len(openings._kept) <= MOST


values = st.text(max_size=6) | st.integers(0, 10**6).map(str) | st.sampled_from([_MARK, _MARK + "\x01", "\x011"])
names = st.sampled_from(["content-length", "a", "x-vsr-a", ":path"])


@given(st.lists(st.tuples(st.lists(st.tuples(names, values), max_size=4), st.booleans()), max_size=12))
@example(
    [
        ([("a", _MARK + "\x01"), ("content-length", "1")], False),
        ([("a", _MARK + "\x02"), ("content-length", "1")], False),
    ]
)
@example([([("content-length", "1")], False), ([("content-length", "é")], False), ([("content-length", "")], False)])
def test_what_was_kept_says_what_reading_anew_says(streams: list[tuple[list[tuple[str, str]], bool]]) -> None:
    openings = Openings()
    for extra, eos in [*streams, *streams]:
        message = opening(*extra, eos=eos)
        assert read(openings, message) == Opening.of(message)
