"""Whatever a document holds: that it is read by its outline as a parser of the whole reads it."""

from __future__ import annotations

import json
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from router.wire.longtext import LongText
from router.wire.outline import Outline, outlined

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=80) | st.text('\\"\n\u00e9\U0001f600', max_size=80)
LEAF = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT
ANY = st.recursive(LEAF, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5))
DOCUMENT = st.dictionaries(TEXT, ANY, max_size=6)
BLOCK, LONG = 32, 40


def outline_of(body: bytes, long: int = LONG, block: int = BLOCK) -> Outline | None:
    return outlined(body, long, block)


def filled(outline: Outline) -> Any:
    for parent, path in outline.places:
        assert type(parent[path[-1]]) is LongText
        parent[path[-1]] = str(parent[path[-1]])
    return outline.document


def same(body: bytes, long: int, block: int) -> None:
    outline = outline_of(body, long, block)
    if outline is not None:
        canonical = orjson.dumps(orjson.loads(outline.skeleton)) == outline.skeleton
        assert outline.canonical == canonical
        assert filled(outline) == orjson.loads(body)


@given(DOCUMENT, st.integers(1, 60), st.integers(26, 60), st.booleans())
def test_compact_and_other_spellings_are_read_alike(
    document: dict[str, Any], long: int, block: int, ascii_only: bool
) -> None:
    same(orjson.dumps(document), long, block)
    same(json.dumps(document, ensure_ascii=ascii_only).encode(), long, block)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=3 * BLOCK), DOCUMENT, st.booleans())
def test_a_long_text_is_always_taken_out(text: str, beside: dict[str, Any], ascii_only: bool) -> None:
    document = {**beside, "content": text}
    outline = outline_of(json.dumps(document, ensure_ascii=ascii_only).encode())
    long_keys = any(len(json.dumps(key)) >= LONG for key in beside)
    assert outline is not None or long_keys or len(json.dumps(beside)) > 2 * LONG
    if outline is not None:
        assert outline.document["content"] == text
        assert len(outline.skeleton) < len(json.dumps(beside, ensure_ascii=ascii_only).encode()) + LONG + 24
        assert filled(outline) == document


@given(st.binary(max_size=200), st.binary(max_size=60), st.integers(26, 60))
def test_what_is_accepted_is_what_a_parser_accepts(garbage: bytes, end: bytes, block: int) -> None:
    for body in (garbage, b'{"a":"' + garbage + b'"}', b'{"a":"' + b"x" * 150 + garbage + end + b'"}'):
        outline = outline_of(body, block=block)
        if outline is not None:
            assert filled(outline) == orjson.loads(body)


@given(st.lists(st.sampled_from(["\\", "\\u", "d83d", "de00", "\\ud83d\\ude00", "\\\\", "é", "😀", "a" * 11])))
def test_escapes_and_characters_are_never_cut(parts: list[str]) -> None:
    body = ('{"a":"' + "x" * 3 * BLOCK + "".join(parts) * 4 + "x" * 2 * BLOCK + '"}').encode()
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        assert outline_of(body) is None
    else:
        outline = outline_of(body)
        assert outline is not None
        assert filled(outline) == document


@given(DOCUMENT, TEXT, ANY, st.integers(1, 30))
def test_a_key_twice_is_never_canonical(document: dict[str, Any], key: str, value: Any, long: int) -> None:
    first, last = orjson.dumps({key: value}), orjson.dumps(document | {key: value})
    outline = outline_of(first[:-1] + b"," + last[1:], long)
    assert outline is None or not outline.canonical
