"""Configuration under arbitrary values: nothing is lost in a round trip, and no input breaks the loader."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from router.config.document import parse
from router.config.dump import dump
from router.config.load import Loaded, load
from router.config.migrate import migrate
from router.config.problems import ConfigError
from router.config.scalars import NULL
from tests.support.config_samples import GOOD, describe

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=12) | st.sampled_from(
    ["yes", "no", "on", "true", "null", "~", "", "1", "0o7", "0x1", "1e5", ".5", ".inf", "12:30", "<<", "=", "a: b",
     "# x", "- a", "${A}", "$${A}", "$", "a\nb", " a ", "a\n", "\ttab", "'", '"', "2024-01-01", "&a", "*a", "!t", "%x",
     "@x"]
)  # fmt: skip
SCALARS = TEXT | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.booleans() | st.just(NULL)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=12
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(TEXT, VALUES, min_size=1, max_size=4))
def test_parse_of_dump_is_identity(value: dict[str, Any]) -> None:
    document = parse(dump(value), file="c.yaml", environ={"A": "wrong"})
    assert document.problems == []
    assert document.value == value
    assert _types(document.value) == _types(value)
    again = parse(dump(document.value), file="c.yaml", environ={})
    assert again.value == document.value
    assert again.raw == document.raw


def _types(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _types(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_types(item) for item in value]
    return type(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def test_the_sample_loads_the_same_after_a_round_trip() -> None:
    again = dump(parse(GOOD, file="c.yaml", environ={}).value)
    assert _load(again).plan == _load(GOOD).plan


def test_false_zero_null_and_absent_stay_different() -> None:
    texts = ["a: {b: false}\n", "a: {b: 0}\n", "a: {b: null}\n", "a: {}\n", "a: {b: ''}\n", "a: {b: []}\n"]
    values = [parse(dump(parse(text, file="", environ={}).value), file="", environ={}).value for text in texts]
    assert [repr(value["a"].get("b", "absent")) for value in values] == ["False", "0", "null", "'absent'", "''", "[]"]


def _load(text: str) -> Loaded:
    return load(text, environ={}, describe=describe, serving=False, file="c.yaml")


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in items for place in ((*path, key), *_places(item, (*path, key)))]


SAMPLE = _plain(parse(GOOD, file="c.yaml", environ={}).value)
MUTATIONS = st.lists(
    st.tuples(st.sampled_from(_places(SAMPLE)), st.sampled_from(["drop", "replace", "rename", "add"]), VALUES, TEXT),
    min_size=1,
    max_size=4,
)


def _mutated(mutations: list[tuple[tuple[Any, ...], str, Any, str]]) -> dict[str, Any]:
    tree: dict[str, Any] = copy.deepcopy(SAMPLE)
    for path, action, value, key in mutations:
        parent: Any = tree
        try:
            for part in path[:-1]:
                parent = parent[part]
            last = path[-1]
            if action == "drop":
                del parent[last]
            elif action == "replace":
                parent[last] = value
            elif action == "rename" and isinstance(parent, dict):
                parent[key] = parent.pop(last)
            elif isinstance(parent, dict):
                parent[key] = value
        except (KeyError, IndexError, TypeError, AttributeError):
            continue
    return tree


@settings(max_examples=250, deadline=None)
@given(MUTATIONS)
def test_a_damaged_configuration_is_refused_with_places_in_the_text(mutations: Any) -> None:
    text = dump(_mutated(mutations))
    lines = text.split("\n")
    try:
        loaded = _load(text)
    except ConfigError as error:
        problems = error.problems
    else:
        problems = loaded.warnings
        for recipe in loaded.plan.recipes.values():
            for decision in recipe.decisions:
                assert all(ref.model in loaded.plan.models for ref in decision.model_refs)
            assert all(question.deployment in loaded.plan.deployments for question in recipe.questions)
    for problem in problems:
        assert 1 <= problem.line <= len(lines)
        assert problem.column >= 1
        assert problem.render().startswith(f"c.yaml:{problem.line}:{problem.column}: ")


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from("a:-[]{}&*!|>'\"#%@`,?~ \n\t\r$1.\x85\u2028é<"), max_size=60))
def test_any_text_is_a_document_or_a_config_error(text: str) -> None:
    for read in (_load, migrate):
        with contextlib.suppress(ConfigError):
            read(text)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(TEXT, VALUES, max_size=3), st.sampled_from([2, 3, 4, 8]))
def test_migration_moves_values_unchanged(policy: dict[str, Any], indent: int) -> None:
    """Whatever stands in `routing` stands in the recipe afterwards, and a second run changes nothing."""
    policy = {f"x{key}": value for key, value in policy.items()} | {"strategy": "priority"}
    body = "".join(" " * indent + line + "\n" if line else "\n" for line in dump(policy).split("\n")[:-1])
    if parse(f"routing:\n{body}", file="", environ={}).value != {"routing": policy}:
        return  # a block scalar that this crude indentation changes
    text, _ = migrate(f"version: v0.3\nrouting:\n{body}")
    expected = {"version": "v0.5", "recipes": [{"name": "default", **policy}]}
    assert parse(text, file="", environ={}).value == expected
    assert migrate(text) == (text, [])
