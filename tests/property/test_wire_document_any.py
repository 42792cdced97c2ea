"""Whatever a document holds: that it is written as its body is told in pieces as it is at once."""

from __future__ import annotations

import json
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from router.wire.document import written_back

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
LEAF = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT
ANY = st.recursive(LEAF, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5))
DOCUMENT = st.dictionaries(TEXT, ANY, max_size=6)


def same(body: bytes, long: int, piece: int) -> None:
    document: dict[str, Any] = orjson.loads(body)
    assert written_back(document, body, long=long, piece=piece) == (orjson.dumps(document) == body)


@given(DOCUMENT, st.integers(1, 30), st.integers(1, 30))
def test_compact_documents_are_written_back(document: dict[str, Any], long: int, piece: int) -> None:
    body = orjson.dumps(document)
    assert written_back(orjson.loads(body), body, long=long, piece=piece)
    same(body, long, piece)


@given(DOCUMENT, st.integers(1, 30), st.integers(1, 30), st.booleans())
def test_other_spellings_are_not(document: dict[str, Any], long: int, piece: int, ascii_only: bool) -> None:
    same(json.dumps(document, ensure_ascii=ascii_only).encode(), long, piece)
    same(json.dumps(document, ensure_ascii=ascii_only, separators=(",", ":")).encode(), long, piece)


@given(DOCUMENT, TEXT, ANY, st.integers(1, 30), st.integers(1, 30))
def test_a_key_twice_is_never_written_back(
    document: dict[str, Any], key: str, value: Any, long: int, piece: int
) -> None:
    first, last = orjson.dumps({key: value}), orjson.dumps(document | {key: value})
    body = first[:-1] + b"," + last[1:]
    assert not written_back(orjson.loads(body), body, long=long, piece=piece)
