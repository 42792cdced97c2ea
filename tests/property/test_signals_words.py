"""Rules of words found together say what each would say by itself, looked for in the plainest way."""

from __future__ import annotations

import unicodedata
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from router.config.expressions import compile_pattern
from router.config.heuristics import EventRule, HeuristicRule, KeywordOperator, KeywordRule, StructureRule
from router.signals import patterns
from router.signals.folding import fold, space
from router.signals.heuristics import Heuristics
from router.signals.reading import Reading
from router.signals.scripts import joins, units
from router.wire.text import own_words
from tests.support.signals import facts

# Letters whose folded form is another letter or several, marks that compose, every kind of white space, and sides that
# do and do not join a word.
ALPHABET = "aAsSßẞ\u017fkK\u212afiFIﬁﬃİi\u01311_é\u0301\u0307ŉ'ʼΐ中密 \t\n\u00a0\u3000\u2028-.?"
LITERALS = st.text(st.sampled_from(ALPHABET), min_size=1, max_size=4).filter(
    lambda text: bool(_plainly(text, cased=True)) and bool(_plainly(text, cased=False))
)
TEXTS = st.lists(
    st.one_of(LITERALS, st.sampled_from(["strasse", "Straße", "fi x", "kiss", "s", "ss", " ", "e\u0301", "12"])),
    max_size=12,
).map("".join)
EXPRESSIONS = st.sampled_from(
    [
        r"\bs+\b",
        "a.i",
        r"(?m)^\s*\d+",
        "(?P<x>k|é)",
        "(?P<x>中)",
        "ß$",
        "x*",
        "[^a-z]",
        "[K]",
        r"\d{2}",
        "fi|ss",
        "(a|s)",
    ]
)
OPERATORS: tuple[KeywordOperator, ...] = ("AND", "OR", "NOR")
FEATURES: tuple[Literal["exists", "count", "density"], ...] = ("exists", "count", "density")
FILLERS = tuple(f"filler{number}" for number in range(30))


@st.composite
def rules(draw: st.DrawFn) -> list[HeuristicRule]:
    """Some of each kind, few or many words in all."""
    made: list[HeuristicRule] = []
    for number in range(draw(st.integers(1, 5))):
        cased = draw(st.booleans())
        exact = draw(st.booleans())
        words = tuple(draw(st.lists(LITERALS if exact else EXPRESSIONS, min_size=1, max_size=4)))
        operator = draw(st.sampled_from(OPERATORS))
        made.append(
            KeywordRule(f"keyword:{number}", operator, "exact" if exact else "regex", words, case_sensitive=cased)
        )
        feature = draw(st.sampled_from(FEATURES))
        literals = tuple(draw(st.lists(LITERALS, min_size=1, max_size=3)))
        expression = draw(EXPRESSIONS)
        made += [
            StructureRule(f"structure:w{number}", feature, "keyword_set", keywords=literals, case_sensitive=cased),
            StructureRule(f"structure:x{number}", feature, "regex", pattern=expression, case_sensitive=cased),
        ]
    if draw(st.booleans()):
        sequences = tuple(draw(st.lists(st.tuples(LITERALS, LITERALS), min_size=1, max_size=2)))
        made.append(StructureRule("structure:sequence", "sequence", "sequence", sequences=sequences))
    if draw(st.booleans()):
        made.append(KeywordRule("keyword:fillers", "OR", "exact", FILLERS))
    if draw(st.booleans()):
        made.append(EventRule("event:e", event_types=(draw(LITERALS),), severities=(draw(LITERALS),)))
    return made


@given(rules(), TEXTS)
def test_rules_found_together_say_what_each_says_alone(made: list[HeuristicRule], written: str) -> None:
    found = Heuristics(made).read(facts(written))
    assert list(found) == [rule.name for rule in made]
    text = unicodedata.normalize("NFC", own_words(written))
    for rule in made:
        matched, value = _naively(rule, text)
        assert (found[rule.name].matched, found[rule.name].value(None)) == (matched, value), rule


@given(st.lists(EXPRESSIONS, min_size=9, max_size=12, unique=True), TEXTS)
def test_many_expressions_are_the_same_as_few(expressions: list[str], written: str) -> None:
    together = KeywordRule("keyword:k", "OR", "regex", tuple(expressions))
    text = unicodedata.normalize("NFC", own_words(written))
    expected = sum(_matches(one, text, cased=False) for one in set(expressions))
    assert _of(together, written).value(None) == float(expected)


@given(st.text(max_size=8))
def test_a_text_of_usual_characters_is_composed(text: str) -> None:
    usual = "".join(one for one in text if any(low <= ord(one) <= high for low, high in patterns.COMPOSED))
    assert unicodedata.normalize("NFC", usual) == usual


def _of(rule: HeuristicRule, written: str) -> Reading:
    return Heuristics([rule]).read(facts(written))[rule.name]


def _naively(rule: HeuristicRule, text: str) -> tuple[bool, float]:
    match rule:
        case KeywordRule():
            return _keyword(rule, text)
        case EventRule():
            groups = [rule.event_types, rule.severities]
            hits = sum(any(_places(text, word, cased=False) for word in group) for group in groups)
            return hits > 0, float(hits)
        case StructureRule():
            number = _structure(rule, text)
            return number > 0, number
    raise AssertionError(rule)


def _keyword(rule: KeywordRule, text: str) -> tuple[bool, float]:
    cased = rule.case_sensitive
    distinct: dict[str, bool] = {}
    for keyword in rule.keywords:
        if rule.method == "exact" or not set("\\.^$*+?{}[]|()") & set(keyword):
            distinct["w" + _plainly(unicodedata.normalize("NFC", keyword), cased=cased)] = bool(
                _places(text, keyword, cased=cased)
            )
        else:
            distinct["x" + keyword] = _matches(keyword, text, cased=cased)
    hits = sum(distinct.values())
    matched = {"AND": hits == len(distinct), "OR": hits > 0, "NOR": hits == 0}[rule.operator]
    return matched, float(hits)


def _structure(rule: StructureRule, text: str) -> float:
    cased = rule.case_sensitive
    if rule.source == "sequence":
        return float(any(_in_order(text, one) for one in rule.sequences))
    if rule.source == "regex":
        expression = compile_pattern(rule.pattern or "", case_sensitive=cased)
        number = float(len(list(expression.finditer(text.encode("utf-8", "replace")))))
    else:
        distinct = {_plainly(unicodedata.normalize("NFC", word), cased=cased) for word in rule.keywords}
        number = float(sum(len(_places(text, word, cased=cased)) for word in distinct))
    if rule.feature == "count":
        return number
    return float(number > 0) if rule.feature == "exists" else min(number / (units(text) or 1), 1.0)


def _in_order(text: str, words: tuple[str, ...]) -> bool:
    after = 0
    for word in words:
        ends = [end for start, end in _places(text, word, cased=False) if start >= after]
        if not ends:
            return False
        after = min(ends)
    return True


def _places(text: str, literal: str, *, cased: bool) -> list[tuple[int, int]]:
    """Every place where a literal occurs as a whole word."""
    where, what = _plainly(text, cased=cased), _plainly(unicodedata.normalize("NFC", literal), cased=cased)
    found: list[tuple[int, int]] = []
    for start in range(len(where) - len(what) + 1):
        end = start + len(what)
        before, after = where[start - 1 : start], where[end : end + 1]
        inside = (joins(what[0]) and before and joins(before)) or (joins(what[-1]) and after and joins(after))
        if where[start:end] == what and not inside:
            found.append((start, end))
    return found


def _matches(expression: str, text: str, *, cased: bool) -> bool:
    return compile_pattern(expression, case_sensitive=cased).search(text.encode("utf-8", "replace")) is not None


def _plainly(text: str, *, cased: bool) -> str:
    return space(text) if cased else fold(text)
