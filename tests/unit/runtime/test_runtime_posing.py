from __future__ import annotations

from pathlib import Path

import pytest

from router.runtime import posing
from router.runtime.artifact import open_artifact
from router.runtime.posing import StateTexts
from router.runtime.tokens import Tokenizer
from tests.support.artifacts import build_tiny_artifact


@pytest.fixture
def tokenizer(tmp_path: Path) -> Tokenizer:
    return Tokenizer(open_artifact(str(build_tiny_artifact(tmp_path))))


def test_what_is_kept_is_bounded_in_texts_and_in_tokens(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posing, "KEPT_TEXTS", 3)
    monkeypatch.setattr(posing, "KEPT_TOKENS", 10)
    texts = StateTexts(tokenizer, kept=True)
    first = texts.encode("math", 8)
    assert texts.encode("math", 8) is first
    assert texts.encode("math", 4) is not first
    for word in ("law", "code", "health"):
        texts.encode(word, 8)
    assert texts.encode("math", 8) is not first
    long = texts.encode("law " * 8, 8)
    assert texts.encode("law " * 8, 8) is long
    texts.encode("code " * 8, 8)
    assert texts.encode("law " * 8, 8) is not long


def test_without_keeping_nothing_outlives_its_call(tokenizer: Tokenizer) -> None:
    texts = StateTexts(tokenizer, kept=False)
    call = texts.call()
    first = call.encode("math", 8)
    assert call.encode("math", 8) is first
    assert texts.call().encode("math", 8) is not first
