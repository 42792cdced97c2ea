from __future__ import annotations

import pytest

from router.wire.errors import BodyTooLarge
from router.wire.sse import Event, EventReader, encode


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_every_line_end_is_known(end: bytes) -> None:
    stream = end.join([b"event: a", b"data: 1", b"data:2", b"", b"data: [DONE]", b"", b""])
    assert EventReader().feed(stream) == [Event("1\n2", "a"), Event("[DONE]")]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data:x\n\n", [Event("x")]),
        (b"data:  x \n\n", [Event(" x ")]),
        (b"data\n\n", [Event("")]),
        (b"data:\ndata:\n\n", [Event("\n")]),
        (b": comment\ndata: x\n: more\n\n", [Event("x")]),
        (b":\n\n\n\n", []),
        (b"event: ping\n\n", []),
        (b"event: ping\n\ndata: x\n\n", [Event("x")]),
        (b"unknown: 1\ndata: x\nno colon\n\n", [Event("x")]),
        (b"id: 7\nretry: 250\ndata: x\n\n", [Event("x", None, "7", 250)]),
        (b"id: a\0b\nretry: 2x\ndata: x\n\n", [Event("x")]),
        (b"\xef\xbb\xbfdata: x\n\n", [Event("x")]),
        (b"data: x\n\n\xef\xbb\xbfdata: y\n\n", [Event("x")]),
        (b"data: \xc3\xa9 \xff\n\n", [Event("é \ufffd")]),
        (b"data: unfinished\n", []),
        (b'data: {"a":1}\n\ndata:{"a":2}\n\n', [Event('{"a":1}'), Event('{"a":2}')]),
    ],
)
def test_fields_are_read_as_the_standard_says(stream: bytes, events: list[Event]) -> None:
    assert EventReader().feed(stream) == events


def test_a_line_end_may_be_cut_in_two() -> None:
    reader = EventReader()
    assert reader.feed(b"data: x\r") == []
    assert reader.feed(b"") == []
    assert reader.feed(b"\n\r") == [Event("x")]
    assert reader.feed(b"\ndata: y\r\n\r\n") == [Event("y")]


def test_what_is_held_is_bounded() -> None:
    reader = EventReader(limit=100)
    for _ in range(50):
        assert reader.feed(b"data: 0123456789\n\n") == [Event("0123456789")]
    for _ in range(100):
        reader.feed(b"x")
    with pytest.raises(BodyTooLarge):
        reader.feed(b"x")
    with pytest.raises(BodyTooLarge):
        EventReader(limit=100).feed(b"data: 0123456789\n" * 10)


def test_events_are_written() -> None:
    assert encode(Event("x")) == b"data: x\n\n"
    assert encode(Event("")) == b"data: \n\n"
    assert (
        encode(Event("1\n2\r\n3", "delta", "9", 5)) == b"event: delta\nid: 9\nretry: 5\ndata: 1\ndata: 2\ndata: 3\n\n"
    )


@pytest.mark.parametrize("event", [Event("x", event="a\nb"), Event("x", id="a\rb")])
def test_a_field_cannot_smuggle_a_line(event: Event) -> None:
    with pytest.raises(ValueError, match="one line"):
        encode(event)
