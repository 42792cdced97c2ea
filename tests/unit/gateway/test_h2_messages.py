"""gRPC's framing in pieces of any size."""

from __future__ import annotations

import sys

import pytest

from router.gateway.h2.messages import Compressed, Deframer, TooLarge
from tests.support.h2_peer import message


def test_messages_in_one_piece() -> None:
    deframer = Deframer(10)
    assert deframer.feed(message(b"one")) == [b"one"]
    assert deframer.feed(message(b"") + message(b"two") + message(b"three")) == [b"", b"two", b"three"]
    assert deframer.whole


@pytest.mark.parametrize("step", [1, 2, 3, 4, 5, 6, 7])
def test_messages_in_pieces(step: int) -> None:
    data = message(b"0123456789") + message(b"") + message(b"x")
    deframer, found = Deframer(10), list[bytes]()
    for at in range(0, len(data), step):
        found += deframer.feed(data[at : at + step])
    assert found == [b"0123456789", b"", b"x"]
    assert deframer.whole


def test_what_is_incomplete_is_counted_and_can_be_let_go() -> None:
    deframer = Deframer(10)
    assert deframer.feed(message(b"abc")[:-1]) == []
    assert (deframer.whole, deframer.held) == (False, 2)
    deframer.clear()
    assert deframer.held == 0


def test_a_prefix_alone_is_incomplete() -> None:
    deframer = Deframer(10)
    deframer.feed(message(b"abc")[:5])
    assert not deframer.whole


def test_too_large_is_known_from_the_prefix() -> None:
    deframer = Deframer(10)
    with pytest.raises(TooLarge):
        deframer.feed(message(b"x" * 11)[:5])


def test_compressed_messages_are_refused() -> None:
    with pytest.raises(Compressed):
        Deframer(10).feed(b"\x01\x00\x00\x00\x01x")


def test_a_message_in_single_bytes_does_not_take_many_times_its_size() -> None:
    deframer = Deframer(50_000)
    data = message(b"x" * 50_000)
    for at in range(len(data) - 1):
        deframer.feed(data[at : at + 1])
    assert sum(map(sys.getsizeof, deframer._parts)) < 60_000
    assert deframer.feed(b"x") == [b"x" * 50_000]
