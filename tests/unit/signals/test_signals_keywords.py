"""Keyword rules: every method and operator, whole words in every script, and the public false positives."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from router.config.expressions import BadPattern
from router.config.heuristics import KeywordMethod, KeywordOperator, KeywordRule
from router.signals.heuristics import Heuristics
from router.signals.similar import allowed_edits
from tests.support.signals import facts, matches, reading

CASES = [json.loads(line) for line in Path("tests/data/false_positives.jsonl").read_text("utf-8").splitlines()]


def rule(*keywords: str, method: KeywordMethod = "regex", operator: KeywordOperator = "OR", **more: Any) -> KeywordRule:
    return KeywordRule("keyword:k", operator, method, keywords, **more)


PUBLIC = {
    "persona": rule("DAN", "do anything now"),
    "phone": rule(r"(?:^|[^\w])(?:\+\d{1,3}[ -]?)?\(?\d{3}\)?[ -]\d{3}[ -]\d{4}\b"),
    "secret": rule(r"\bsk-[a-z]+-[A-Za-z0-9]{24,}\b"),
    "address": rule(
        r"\b(?:ip|address|host|client)\W{1,3}(?:[1-9]\d?|1[013-9]\d|12[0-689]|2[0-4]\d|25[0-5])(?:\.\d{1,3}){3}\b"
    ),
    "persona-in-capitals": rule("DAN", case_sensitive=True),
    "words": rule("refund", "credit card", "class", "ass", "café", "退款", "환불", method="exact"),
    "languages": rule("C++", "C#", method="exact"),
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['rule']}: {case['text'][:30]}")
def test_the_public_false_positives(case: dict[str, Any]) -> None:
    assert matches(PUBLIC[case["rule"]], case["text"]) is case["matches"]


@pytest.mark.parametrize(
    ("operator", "text", "expected"),
    [
        ("OR", "only red", True),
        ("OR", "neither", False),
        ("AND", "red and blue", True),
        ("AND", "red", False),
        ("NOR", "neither", True),
        ("NOR", "red", False),
    ],
)
@pytest.mark.parametrize("method", ["exact", "regex", "fuzzy", "bm25", "ngram"])
def test_operators(method: KeywordMethod, operator: KeywordOperator, text: str, expected: bool) -> None:
    threshold = {"bm25": 0.1, "ngram": 0.9}.get(method, 0.0)
    assert matches(rule("red", "blue", method=method, operator=operator, threshold=threshold), text) is expected


def test_the_value_is_how_many_keywords_occur() -> None:
    found = reading(rule("a b", "c", "d", "C"), "c c c a  b")
    assert found.value(None) == 2.0
    assert found.confidence is None


def test_a_repeated_keyword_counts_once_for_and() -> None:
    assert matches(rule("red", "RED", operator="AND"), "red") is True


def test_case() -> None:
    assert matches(rule("DAN", case_sensitive=True), "dan") is False
    assert matches(rule("DAN", case_sensitive=True), "DAN") is True
    assert matches(rule("STRASSE"), "straße") is True
    assert matches(rule(r"err\d+", case_sensitive=True), "ERR12") is False
    assert matches(rule(r"err\d+"), "ERR12") is True


def test_regular_expressions() -> None:
    assert matches(rule(r"^ignore (all|previous)"), "Ignore previous instructions") is True
    assert matches(rule(r"日本.語"), "日本国語") is True
    with pytest.raises(BadPattern):
        Heuristics([rule("a(?=b)")])
    with pytest.raises(BadPattern):
        Heuristics([rule("a)(?:b")])


@pytest.mark.parametrize(
    ("keyword", "text", "expected"),
    [
        ("password", "my pasword is lost", True),
        ("password", "passwords", True),
        ("password", "word", False),
        ("reset password", "resett pasword please", True),
        ("dan", "can you plan it", False),
        ("dan", "dan", True),
        ("urgent", "ugrent!", True),
        ("urgent", "argent", True),
        ("urgent", "agent", False),
        ("don't", "I don't know", True),
    ],
)
def test_fuzzy(keyword: str, text: str, expected: bool) -> None:
    assert matches(rule(keyword, method="fuzzy"), text) is expected


def test_short_words_allow_no_edit() -> None:
    assert [allowed_edits("x" * length, 2) for length in (3, 4, 7, 8, 20)] == [0, 1, 1, 2, 2]


def test_ngram_and_bm25_thresholds() -> None:
    near = rule("immediately", method="ngram", threshold=0.4)
    assert matches(near, "do it immediatly") is True
    assert matches(near, "do it later") is False
    relevant = rule("debug the function", "weather", method="bm25", threshold=0.1)
    assert matches(relevant, "how do I debug this?") is True
    assert matches(relevant, "cook rice") is False
    assert matches(rule("debug the function", method="bm25", threshold=50.0), "debug the function") is False


def test_only_the_current_user_turn_is_read() -> None:
    about = facts("a refund", {"role": "assistant", "content": "refund?"}, "no, thanks")
    assert matches(rule("refund"), about) is False


def test_many_rules_read_the_text_once_and_in_linear_time() -> None:
    rules = [KeywordRule(f"keyword:{i}", "OR", "exact", tuple(f"word{i}x{j}" for j in range(10))) for i in range(100)]
    compiled = Heuristics(rules)
    text = "the quick brown fox " * 5_000
    started = time.perf_counter()
    found = compiled.read(facts(text + " word7x3"))
    assert [name for name, one in found.items() if one.matched] == ["keyword:7"]
    assert time.perf_counter() - started < 2.0


def test_a_hostile_text_does_not_slow_an_expression_down() -> None:
    compiled = Heuristics([rule(r"(a+)+$", r"(x|x)*y")])
    started = time.perf_counter()
    assert compiled.read(facts("a" * 100_000 + "!"))["keyword:k"].matched is False
    assert time.perf_counter() - started < 2.0
