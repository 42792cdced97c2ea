"""Frames by themselves."""

from __future__ import annotations

import pytest

from router.gateway.h2 import frames
from router.gateway.h2.frames import ConnectionFault, ErrorCode, FrameReader, Setting

PING = frames.ping(b"12345678")


@pytest.mark.parametrize("step", [1, 5, 24, 25, 1000])
def test_a_stream_of_bytes_is_cut_into_frames(step: int) -> None:
    data = frames.PREFACE + PING + frames.SETTINGS_ACK + frames.frame(frames.DATA, 1, 2**31 - 1, b"x" * 300)
    reader, found = FrameReader(), list[frames.Frame]()
    for at in range(0, len(data), step):
        found += reader.feed(data[at : at + step])
    assert found == [
        (frames.PING, 0, 0, b"12345678"),
        (frames.SETTINGS, frames.ACK, 0, b""),
        (frames.DATA, 1, 2**31 - 1, b"x" * 300),
    ]


def test_the_reserved_bit_of_a_stream_number_is_ignored() -> None:
    frame = bytearray(frames.rst_stream(3, ErrorCode.CANCEL))
    frame[5] |= 0x80
    assert [number for _, _, number, _ in FrameReader().feed(frames.PREFACE + bytes(frame))] == [3]


def test_another_protocol_is_told_at_its_first_byte_that_differs() -> None:
    with pytest.raises(ConnectionFault) as fault:
        list(FrameReader().feed(b"GET / HTTP/1.1\r\n"))
    assert fault.value.code is ErrorCode.PROTOCOL_ERROR
    assert list(FrameReader().feed(b"PRI * ")) == []


def test_a_frame_that_is_too_large_is_refused_by_its_head() -> None:
    head = frames.head(frames.MAX_FRAME_BYTES + 1, frames.DATA, 0, 1)
    with pytest.raises(ConnectionFault) as fault:
        list(FrameReader().feed(frames.PREFACE + head))
    assert fault.value.code is ErrorCode.FRAME_SIZE_ERROR


def test_settings() -> None:
    values = [(Setting.HEADER_TABLE_SIZE, 0), (Setting.MAX_FRAME_SIZE, 2**24 - 1)]
    frame = frames.settings(values)
    assert list(frames.read_settings(frame[9:])) == values
    with pytest.raises(ConnectionFault):
        frames.read_settings(b"12345")


def test_padding() -> None:
    assert frames.unpad(b"\x02data\x00\x00") == b"data"
    assert frames.unpad(b"\x00") == b""
    for wrong in (b"", b"\x01", b"\x05data"):
        with pytest.raises(ConnectionFault):
            frames.unpad(wrong)


def test_a_message_head_is_the_frames_and_the_messages() -> None:
    assert frames.message_head(300, 7) == frames.head(305, frames.DATA, 0, 7) + b"\x00\x00\x00\x01\x2c"


def test_numbers() -> None:
    assert frames.read_number(b"\xff\xff\xff\xff") == frames.MAX_WINDOW
    with pytest.raises(ConnectionFault) as fault:
        frames.read_number(b"123")
    assert fault.value.code is ErrorCode.FRAME_SIZE_ERROR
