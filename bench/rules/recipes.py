"""The rules that are measured: very many, those of a recipe of real life, and one or two of each family."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bench.gateway.router import MODEL, Ports, configuration
from router.config.heuristics import (
    ContextRule,
    ConversationRule,
    EventRule,
    HeuristicRule,
    KeywordMethod,
    KeywordRule,
    LanguageRule,
    StructureRule,
)
from router.config.load import load

_ENGLISH: Final = ("the", "quick", "price", "of", "several", "plans", "short", "report", "team", "contract")
_WORDS: Final = ("python", "traceback", "refactor", "unit test", "refund", "invoice", "stack trace", "credit card")

TYPICAL: Final[Mapping[str, Any]] = {
    "keywords": [
        {
            "name": "code",
            "method": "exact",
            "keywords": ["python", "traceback", "refactor", "unit test", "compile", "regex"],
        },
        {
            "name": "billing",
            "method": "exact",
            "keywords": ["refund", "invoice", "chargeback", "credit card", "退款"],
        },
        {"name": "persona", "keywords": ["DAN", "ignore (all|previous) instructions", "jailbreak"]},
    ],
    "context": [{"name": "long", "min_tokens": "32K"}],
    "conversation": [{"name": "tools", "feature": {"type": "exists", "source": {"type": "tool_definition"}}}],
    "structure": [
        {
            "name": "steps",
            "feature": {"type": "exists", "source": {"type": "regex", "pattern": r"(?m)^\s*\d+\.\s"}},
        },
        {
            "name": "large",
            "feature": {"type": "count", "source": {"type": "text_bytes"}},
            "predicate": {"gte": 8000},
        },
    ],
}
"""A few lists of words, the length, tools, and a look at the form: seven rules, each read by a decision."""

_DECISIONS: Final = (
    *(("keyword", "persona"), ("keyword", "billing"), ("keyword", "code"), ("conversation", "tools")),
    *(("context", "long"), ("structure", "steps"), ("structure", "large")),
)


def typical_configuration(ports: Ports) -> str:
    """The gateway benchmark's configuration with the rules of `TYPICAL`, and a decision for each before the last."""
    document = json.loads(configuration(ports))
    (recipe,) = document["recipes"]
    refs = [{"model": MODEL}]
    recipe["signals"] = TYPICAL
    recipe["decisions"] += [
        {"name": f"on_{name}", "rules": {"type": family, "name": name}, "modelRefs": refs}
        for family, name in _DECISIONS
    ]
    return json.dumps(document)


def typical() -> Sequence[HeuristicRule]:
    """The same rules by themselves, as that configuration compiles them."""
    text = typical_configuration(Ports(1, 2, 3, 4, 5))
    plan = load(text, environ={}, describe=lambda artifact: None, serving=False).plan
    return plan.recipes["default"].heuristics


def many() -> Sequence[HeuristicRule]:
    """1,000 literals and 100 regular expressions, in rules of ten. `texts.texts` puts some into its texts."""
    words: list[HeuristicRule] = [
        KeywordRule(f"keyword:words{i}", "OR", "exact", tuple(f"{one} {i}" for one in _ENGLISH)) for i in range(100)
    ]
    expressions: list[HeuristicRule] = [
        KeywordRule(
            f"keyword:expressions{i}", "OR", "regex", tuple(rf"\bcase{i}{j}[ -]?\d{{2,6}}\b" for j in range(10))
        )
        for i in range(10)
    ]
    return words + expressions


def families() -> Mapping[str, Sequence[HeuristicRule]]:
    """Rules of one family at a time."""
    return {
        "keyword, exact": [_keyword("exact")],
        "keyword, regex": [KeywordRule("keyword:k", "OR", "regex", (r"\bcase\d+\b", "ignore (all|previous)"))],
        "keyword, fuzzy": [_keyword("fuzzy")],
        "keyword, bm25": [_keyword("bm25", 0.5)],
        "keyword, ngram": [_keyword("ngram", 0.5)],
        "language": [LanguageRule("language:en", "en", 0.3)],
        "context": [ContextRule("context:long", 32_000, None)],
        "conversation": [ConversationRule("conversation:tools", "exists", "tool_definition")],
        "structure, density": [StructureRule("structure:s", "density", "regex", pattern="[?!]")],
        "event": [EventRule("event:e", event_types=("outage", "failover"), temporal=True)],
        "the typical recipe": typical(),
    }


def _keyword(method: KeywordMethod, threshold: float = 0.0) -> KeywordRule:
    return KeywordRule("keyword:k", "OR", method, _WORDS, threshold=threshold)
