"""What processes and the broker of their gates tell each other. Times are in seconds on `time.monotonic`, which all
processes of a host share.

A message is one line of JSON. Messages hold names of models and numbers, never anything of a request.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

LONGEST_LINE: Final = 4096


class BadMessage(ValueError):
    """A line that is none of these messages."""


class _Message(msgspec.Struct, frozen=True, array_like=True):
    model: str
    """Which gate: a name of the model on this host that all its processes use alike."""


class Refused(_Message, frozen=True, array_like=True, tag="refused"):
    """The model refused a call as overloaded, and asked to be left alone for `hold_s` seconds."""

    hold_s: float = 0.0


class Answered(_Message, frozen=True, array_like=True, tag="answered"):
    """The model answered a call."""


class Sit(_Message, frozen=True, array_like=True, tag="sit"):
    """A request of this process waits, under a number of the process's own; see `gate.Seat`. None stands for never."""

    seat: int
    turn_from: float | None
    open_from: float | None
    until: float
    had: int = 0


class Rise(_Message, frozen=True, array_like=True, tag="rise"):
    """It waits no longer."""

    seat: int


class Called(_Message, frozen=True, array_like=True, tag="called"):
    """A seat is called, and is free again; see `gate.Turn`."""

    seat: int
    probing: bool
    step_s: float


class State(_Message, frozen=True, array_like=True, tag="state"):
    """Whether the model refuses calls now. Told to every process whenever it changes."""

    refusing: bool


FromMember = Refused | Answered | Sit | Rise
FromBroker = Called | State

M = TypeVar("M")

_to_broker = msgspec.json.Decoder(FromMember)
_to_member = msgspec.json.Decoder(FromBroker)


def encode(message: FromMember | FromBroker) -> bytes:
    """The message as a line, with its end."""
    return msgspec.json.encode(message) + b"\n"


def read_from_member(line: bytes) -> FromMember:
    """What a process says. Raises BadMessage."""
    return _read(_to_broker, line)


def read_from_broker(line: bytes) -> FromBroker:
    """What the broker says. Raises BadMessage."""
    return _read(_to_member, line)


def _read(decoder: msgspec.json.Decoder[M], line: bytes) -> M:
    if len(line) > LONGEST_LINE:
        raise BadMessage(f"a message of more than {LONGEST_LINE} bytes")
    try:
        return decoder.decode(line)
    except msgspec.DecodeError as error:
        raise BadMessage(str(error)) from None
