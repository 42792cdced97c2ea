from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.config.plan import StateKind
from router.wire.document import parse_object
from router.wire.edit import replace_model
from router.wire.encoding import decode_body
from router.wire.errors import BadRequest, ErrorCode, WireError
from router.wire.http import Head
from router.wire.request import read_request, state_text
from router.wire.sse import Event, EventReader, encode
from router.wire.surface import Format, Kind, classify, normalise_path
from tests.support.json_spellings import Writer, documents, texts, values

T = TypeVar("T")


def outcome(call: Callable[[], T]) -> T | ErrorCode:
    try:
        return call()
    except WireError as error:
        return error.code


@settings(max_examples=150, deadline=None)
@given(documents, values, texts, st.integers(0, 2**32))
def test_replacing_the_model_changes_one_value_and_no_other_byte(
    document: dict[str, Any], old: Any, new: str, seed: int
) -> None:
    writer = Writer(seed)
    others = [(key, value) for key, value in document.items() if key != "model"]
    place = writer.random.randint(0, len(others))
    before = [writer.pair(key, writer.value(value)) for key, value in others[:place]]
    after = [writer.pair(key, writer.value(value)) for key, value in others[place:]]
    key, written, tail = writer.string("model"), writer.value(old), writer.space()
    # White space after the colon is put in by hand, so that the place of the value is known.
    prefix = writer.space() + "{" + "".join(part + "," for part in before) + writer.space() + key + " :\t"
    suffix = tail + "".join("," + part for part in after) + "}" + writer.space()
    body = (prefix + written + suffix).encode()

    edited = replace_model(body, new)

    assert json.loads(edited) == {**dict(others), "model": new}
    assert edited.startswith(prefix.encode())
    assert edited.endswith(suffix.encode())
    value = edited[len(prefix.encode()) : len(edited) - len(suffix.encode())]
    assert value == orjson.dumps(new) or (old == new and value == written.encode())
    assert replace_model(edited, new) is edited


@settings(max_examples=100, deadline=None)
@given(documents, texts, st.integers(0, 2**32))
def test_a_missing_model_is_put_first_and_nothing_else_moves(document: dict[str, Any], new: str, seed: int) -> None:
    document.pop("model", None)
    body = Writer(seed).object(list(document.items())).encode()
    edited = replace_model(body, new)
    assert json.loads(edited) == {"model": new, **document}
    assert edited.endswith(body[1:])


@settings(max_examples=150, deadline=None)
@given(documents, st.integers(0, 2**32))
def test_strict_reading_agrees_with_the_standard_library(document: dict[str, Any], seed: int) -> None:
    body = Writer(seed).object(list(document.items())).encode()
    parsed = outcome(lambda: parse_object(body))
    if parsed is not ErrorCode.INVALID_REQUEST:  # a key such as "MODEL"
        assert parsed == json.loads(body) == document


@settings(max_examples=150, deadline=None)
@given(st.recursive(documents, lambda inner: st.builds(lambda d: {"in": d}, inner), max_leaves=3), texts, st.integers())
def test_a_key_written_twice_is_found_at_any_depth(document: dict[str, Any], key: str, seed: int) -> None:
    writer = Writer(seed)
    innermost = writer.object([(key, 1), *[pair for pair in document.items() if pair[0] != key], (key, 1)])
    for wrap in range(writer.random.randint(0, 3)):
        innermost = "{" + writer.pair(f"k{wrap}", "[" + innermost + "]") + "}"
    with pytest.raises(BadRequest) as caught:
        parse_object(innermost.encode())
    assert caught.value.code is ErrorCode.DUPLICATE_KEY


contents = st.none() | texts | st.lists(st.fixed_dictionaries({"type": texts}, optional={"text": texts}), max_size=3)
messages = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "system", "tool", "x"])}) | values


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(list(Format)),
    st.fixed_dictionaries({}, optional={"model": values, "stream": values, "system": contents, "tools": values}),
    st.lists(st.builds(lambda m, c: {**m, "content": c} if isinstance(m, dict) else m, messages, contents | values)),
)
def test_any_json_is_read_or_refused_and_never_crashes(
    format: Format, document: dict[str, Any], turns: list[Any]
) -> None:
    document["input" if format is Format.RESPONSES else "messages"] = turns
    request = outcome(lambda: read_request(format, json.dumps(document).encode()))
    if isinstance(request, ErrorCode):
        return
    assert request.stream is (document.get("stream") is True)
    for kind in StateKind:
        state_text(request, kind).encode()


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["gzip", "br", "zstd", "gzip, br", "identity", "deflate"]))
def test_any_bytes_decode_or_are_refused(body: bytes, coding: str) -> None:
    plain = outcome(lambda: decode_body(body, coding, 1000))
    assert isinstance(plain, ErrorCode) or len(plain) <= 1000


mess = st.sampled_from(["/", "//", "/./", "/x/../", "\\", "%2f", "%2F", "%252f", "/;a=b/", "/%2e/", "/y/%2E%2e/"])


@settings(max_examples=150, deadline=None)
@given(st.lists(mess, min_size=4, max_size=4), st.data())
def test_every_spelling_of_an_api_path_is_judged_as_that_api(joints: list[str], data: st.DataObject) -> None:
    def spell(word: str) -> str:
        choices = [data.draw(st.sampled_from([c, c.upper(), f"%{ord(c):02x}", f"%25{ord(c):02X}"])) for c in word]
        return "".join(choices)

    path = joints[0] + spell("v1") + joints[1] + spell("chat") + joints[2] + spell("completions")
    assert normalise_path(path) == "/v1/chat/completions"
    surface = classify(Head("POST", path))
    assert (surface.kind, surface.path) == (Kind.LLM, "/v1/chat/completions")
    assert normalise_path(normalise_path(path)) == normalise_path(path)


lines = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"), max_size=8)
events = st.builds(Event, st.lists(lines, min_size=1, max_size=3).map("\n".join), st.none() | lines.filter(bool))


@settings(max_examples=100, deadline=None)
@given(st.lists(events, max_size=4), st.sampled_from([b"\n", b"\r\n", b"\r"]), st.data())
def test_events_come_out_the_same_however_the_stream_is_cut(
    wanted: list[Event], end: bytes, data: st.DataObject
) -> None:
    stream = b"".join(encode(event) for event in wanted).replace(b"\n", end)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=8)))
    reader = EventReader()
    pieces = [stream[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert [event for piece in pieces for event in reader.feed(piece)] == wanted


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_stream_is_read_the_same_when_cut_at_each_byte(end: bytes) -> None:
    stream = b'\xef\xbb\xbf: hi\nevent: delta\ndata: {"t":"\xc3\xa9\xf0\x9f\x98\x80"}\ndata:2\nid: 1\n\ndata:[DONE]\n\n'
    stream = stream.replace(b"\n", end)
    whole = EventReader().feed(stream)
    assert [event.data for event in whole] == ['{"t":"é😀"}\n2', "[DONE]"]
    for cut in range(len(stream) + 1):
        reader = EventReader()
        assert reader.feed(stream[:cut]) + reader.feed(stream[cut:]) == whole
    reader = EventReader()
    assert [event for i in range(len(stream)) for event in reader.feed(stream[i : i + 1])] == whole
