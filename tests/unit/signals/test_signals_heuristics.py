"""Rules that need no words: context, structure, conversation, metadata, authz, input modality, language, events."""

from __future__ import annotations

from typing import Any

import pytest

from router.config.heuristics import (
    LANGUAGES,
    AuthzRule,
    ContextRule,
    ConversationRule,
    EventRule,
    InputModalityRule,
    LanguageRule,
    MetadataRule,
    StructureRule,
)
from router.questions import Predicate, UnknownReason
from router.signals.facts import RequestFacts
from router.signals.heuristics import Heuristics
from router.signals.languages import identifier
from tests.support.signals import chat, facts, matches, reading


def test_nothing_is_worked_out_that_no_rule_reads() -> None:
    about = facts("hello")
    Heuristics([InputModalityRule("input_modality:text", "text")]).read(about)
    assert not {"text", "folded", "spaced", "encoded", "metadata", "identity"} & vars(about).keys()


def test_context_is_inclusive_at_both_ends() -> None:
    tokens = facts("x" * 40).counts.token_floor
    assert tokens == 10 + 4
    for least, most, expected in ((14, 14, True), (15, None, False), (0, 13, False), (0, None, True)):
        assert matches(ContextRule("context:c", least, most), "x" * 40) is expected


def structure(feature: Any, source: Any, **more: Any) -> StructureRule:
    return StructureRule("structure:s", feature, source, **more)


@pytest.mark.parametrize(
    ("rule", "text", "value"),
    [
        (structure("count", "regex", pattern="[?\uff1f]", predicate=Predicate(gte=4)), "a? b\uff1f c??", 4.0),
        (structure("count", "text_bytes", predicate=Predicate(gt=1)), "né", 3.0),
        (structure("exists", "regex", pattern=r"(?m)^\s*\d+\.\s+"), "Steps:\n1. go\n2. stop", 1.0),
        (
            structure("density", "keyword_set", keywords=("at most", "至少"), predicate=Predicate(gt=0.2)),
            "at most 5",
            1 / 3,
        ),
        (structure("density", "keyword_set", keywords=("至少",), predicate=Predicate(gt=0.2)), "至少三个", 0.25),
        (structure("sequence", "sequence", sequences=(("first", "then"), ("先", "再"))), "First do a, then b", 1.0),
        (structure("sequence", "sequence", sequences=(("先", "再"),)), "先洗再切", 1.0),
    ],
)
def test_structure_matches(rule: StructureRule, text: str, value: float) -> None:
    found = reading(rule, text)
    assert found.matched is True
    assert found.value(None) == pytest.approx(value)


def test_structure_that_is_not_there() -> None:
    assert matches(structure("sequence", "sequence", sequences=(("first", "then"),)), "then first") is False
    assert matches(structure("sequence", "sequence", sequences=(("a", "a"),)), "a") is False
    assert matches(structure("sequence", "sequence", sequences=(("a", "a"),)), "a a") is True
    assert matches(structure("exists", "keyword_set", keywords=("json",)), "jsonl") is False
    assert matches(structure("density", "regex", pattern="x", predicate=Predicate(lt=0.5)), "") is True


TOOLS = [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {}}}]
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
LOOP: list[dict[str, Any] | str] = [
    "hi",
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "1", "content": "42"},
]


@pytest.mark.parametrize(
    ("source", "role", "expected"),
    [
        ("message", None, 4),
        ("message", "user", 1),
        ("message", "non_user", 3),
        ("message", "developer", 1),
        ("message", "tool", 1),
        ("tool_definition", None, 1),
        ("assistant_tool_call", None, 1),
        ("assistant_tool_cycle", None, 1),
        ("active_tool_loop", None, 1),
        ("image_content", None, 0),
    ],
)
def test_conversation(source: Any, role: Any, expected: int) -> None:
    about = facts({"role": "developer", "content": "be kind"}, *LOOP, tools=TOOLS)
    rule = ConversationRule("conversation:c", "count", source, role, Predicate(gte=1))
    assert reading(rule, about).value(None) == expected
    assert matches(ConversationRule("conversation:c", "exists", source, role), about) is (expected > 0)


def test_a_finished_tool_loop_is_not_active() -> None:
    done: list[dict[str, Any] | str] = [*LOOP, {"role": "assistant", "content": "It is 42."}, "thanks"]
    rule = ConversationRule("conversation:c", "exists", "active_tool_loop")
    assert matches(rule, facts(*LOOP)) is True
    assert matches(rule, facts(*done)) is False
    assert matches(rule, facts(*LOOP, "and now?")) is True
    assert matches(rule, facts(*LOOP[:2])) is True


def metadata(values: list[str] | None = None, *, exists: bool = True) -> MetadataRule:
    return MetadataRule("metadata:m", "cohort", None if values is None else frozenset(values), exists)


def test_metadata() -> None:
    about = facts("hi", metadata={"cohort": "beta"})
    assert matches(metadata(["beta", "canary"]), about) is True
    assert matches(metadata(["canary"]), about) is False
    assert matches(metadata(), about) is True
    assert matches(metadata(exists=False), about) is False
    assert matches(metadata(exists=False), facts("hi")) is True


@pytest.mark.parametrize("value", [None, 7, ["beta"], {"cohort": 7}, {"cohort": "x" * 1025}, {"x" * 129: "beta"}])
def test_metadata_out_of_bounds_is_not_read(value: Any) -> None:
    assert matches(metadata(), facts("hi", metadata=value)) is False


def test_metadata_reads_32_entries() -> None:
    many = {f"k{i}": "v" for i in range(32)} | {"cohort": "beta"}
    assert len(facts("hi", metadata=many).metadata) == 32


STAFF = AuthzRule("authz:staff", "staff", frozenset({"ann"}), frozenset({"ops", "dev"}))


@pytest.mark.parametrize(
    ("headers", "trusted", "expected"),
    [
        ({"x-authz-user-id": "ann"}, True, True),
        ({"x-authz-user-groups": "sales, dev"}, True, True),
        ({"x-authz-user-groups": "sales"}, True, False),
        ({"x-authz-user-groups": "ops"}, False, False),
        ({"x-authz-user-id": "ann"}, False, False),
        ({}, True, False),
        ({"x-authz-user-id": " "}, True, False),
    ],
)
def test_identity_is_read_from_trusted_peers_alone(headers: dict[str, str], trusted: bool, expected: bool) -> None:
    assert matches(STAFF, RequestFacts(chat("hi"), headers, trusted=trusted)) is expected


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def test_input_modality_counts_user_messages_alone() -> None:
    about = facts({"role": "assistant", "content": [PICTURE]}, {"role": "user", "content": [PICTURE, PICTURE]})
    assert reading(InputModalityRule("input_modality:i", "image"), about).value(None) == 2
    assert matches(InputModalityRule("input_modality:t", "text"), about) is False


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Bonjour, comment allez-vous aujourd'hui ?", "fr"),
        ("你好请帮我写一个排序程序", "zh"),
        ("Could you explain how this works?", "en"),
        ("Kannst du mir bitte bei der Rechnung helfen?", "de"),
    ],
)
def test_language(text: str, language: str) -> None:
    assert matches(LanguageRule(f"language:{language}", language, 0.3), text) is True
    other = "it" if language != "it" else "en"
    assert matches(LanguageRule(f"language:{other}", other, 0.0), text) is False


def test_a_text_without_letters_has_no_known_language() -> None:
    found = reading(LanguageRule("language:en", "en", 0.3), "12345 !!")
    assert (found.matched, found.reason) == (None, UnknownReason.NO_TEXT)


def test_every_language_can_be_told_apart() -> None:
    assert set(identifier().labels) == set(LANGUAGES)


def test_events() -> None:
    rule = EventRule("event:e", ("payment_failed",), ("critical", "high"), ("TXN_DECLINE",), temporal=True)
    one = reading(rule, '{"severity": "critical"}')
    assert (one.matched, one.value(None), one.confidence) == (True, 1.0, 0.625)
    every = reading(rule, "URGENT: payment_failed critical high txn_decline")
    assert (every.value(None), every.confidence) == (4.0, 1.0)
    assert matches(rule, "hypercritical highway") is False
