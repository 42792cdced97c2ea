"""`config migrate`: older dialects to v0.5, by edits of the text, so that comments and layout stay.

What it does: the top-level `routing` becomes the recipe `default` and a recipe's own `routing` is taken apart; the
signal family, condition, input and algorithm type `decision` becomes `systemone`; a condition on the complexity
`effort:hard` names the rule `effort` and the label `hard`; `defaults.default_model` becomes `model`; the version
follows. What it cannot do alone it says in notes: what modules said for all guards is said by each rule now.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from router.config.document import LOADER
from router.config.families import GUARDS
from router.config.load import OLD_VERSIONS, open_document
from router.config.model.root import VERSION
from router.config.problems import ConfigError, Problem

_ITEM_INDENT = 2
_EXPECTED = {
    "listeners": "where Envoy takes requests",
    "providers": "the backends that modelRefs name",
    "entrypoints": "the model names that clients may ask for",
}
_COMPLEXITIES = frozenset({"easy", "medium", "hard"})
_OF_EACH_GUARD = {"on_error": "on_unknown", "on_unscanned": "on_unscanned", "threshold": "threshold"}
_AS_GUARDS_SAY = {"block": "match", "allow": "no_match"}
_REWRITE_BY_HAND = {"confidence": "escalate", "cascade": "escalate"}


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


def migrate(text: str, file: str = "config.yaml") -> tuple[str, list[str]]:
    """The text in the v0.5 dialect, and notes for people. A v0.5 text comes back unchanged.

    The result may still need what no older file held; `load` says what. Raises `ConfigError` when the text is not YAML,
    or is laid out so that it cannot be edited safely.
    """
    document = open_document(text, environ={}, file=file)
    errors = [problem for problem in document.problems if problem.severity == "error"]
    if errors:
        raise ConfigError(errors)
    notes: list[str] = []
    text = _apply(text, list(_renames(_root(text), notes)))
    while (edits := _unnest(text, file)) is not None:
        text = _apply(text, edits)
    text = _wrap_routing(text, file, notes)
    text = _set_version(text, notes)
    keys = {key.value for key, _ in _root(text).value}
    if notes:
        notes.extend(f"{key} is missing: add {what}" for key, what in _EXPECTED.items() if key not in keys)
    return text, notes


def unified_diff(old: str, new: str, file: str = "config.yaml") -> str:
    """The difference as `diff -u` prints it; empty when there is none."""
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), fromfile=file, tofile=f"{file} ({VERSION})"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _root(text: str) -> yaml.MappingNode:
    node: Any = yaml.compose(text, Loader=LOADER)
    assert isinstance(node, yaml.MappingNode)  # noqa: S101 - `open_document` made sure
    return node


def _apply(text: str, edits: list[_Edit]) -> str:
    for edit in sorted(set(edits), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _get(node: Any, *keys: str) -> Iterator[Any]:
    """Values under keys; `*` goes through a sequence."""
    if not keys:
        yield node
    elif keys[0] == "*":
        for item in node.value if isinstance(node, yaml.SequenceNode) else ():
            yield from _get(item, *keys[1:])
    else:
        for _, value in _pairs(node, keys[0]):
            yield from _get(value, *keys[1:])


def _pairs(node: Any, key: str) -> list[tuple[Any, Any]]:
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return [(name, value) for name, value in pairs if isinstance(name, yaml.ScalarNode) and name.value == key]


def _replace(node: Any, text: str) -> _Edit:
    return _Edit(node.start_mark.index, node.end_mark.index, text)


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1


def _renames(root: Any, notes: list[str]) -> Iterator[_Edit]:
    """The scalars that are called differently now."""
    policies = [*_get(root, "routing"), *_get(root, "recipes", "*"), *_get(root, "recipes", "*", "routing")]
    for policy in policies:
        for signals in _get(policy, "signals"):
            yield from _rename_family(signals, notes)
            notes.extend(_directions(signals))
        for term in _get(policy, "projections", "scores", "*", "inputs", "*"):
            yield from _rename_type(term)
        for rules in _get(policy, "decisions", "*", "rules"):
            yield from _rename_conditions(rules, notes)
        for algorithm in _get(policy, "decisions", "*", "algorithm"):
            yield from _rename_algorithm(algorithm, notes)
    for modules in _get(root, "global", "model_catalog", "modules"):
        notes.extend(_guard_modules(modules))
    for defaults in _get(root, "providers", "defaults"):
        for key, _ in _pairs(defaults, "default_model"):
            if not _pairs(defaults, "model"):
                notes.append(f"line {_line(key)}: default_model is now model")
                yield _replace(key, "model")


def _guard_modules(modules: Any) -> Iterator[str]:
    """What modules said for all guards, and each rule says for itself now. They tell nobody which rules were meant."""
    for module, settings in modules.value if isinstance(modules, yaml.MappingNode) else ():
        for old, new in _OF_EACH_GUARD.items():
            for key, value in _pairs(settings, old):
                if isinstance(value, yaml.ScalarNode):
                    said = _AS_GUARDS_SAY.get(value.value, value.value)
                    instead = f"write {new}: {said} on each of its rules by hand"
                    yield f"line {_line(key)}: {old} of the module {module.value} is gone; {instead}"


def _directions(signals: Any) -> Iterator[str]:
    for family in GUARDS:
        for rule in _get(signals, family, "*"):
            for key, value in _pairs(rule, "direction"):
                what = "what answers are read for stands in response_guard" if value.value == "response" else "drop it"
                yield f"line {_line(key)}: direction is gone from {family} rules: {what}"


def _rename_family(signals: Any, notes: list[str]) -> Iterator[_Edit]:
    for key, _ in _pairs(signals, "decision"):
        if _pairs(signals, "systemone"):
            notes.append(f"line {_line(key)}: move these rules under systemone by hand; both families are there")
        else:
            notes.append(f"line {_line(key)}: the signal family decision is now systemone")
            yield _replace(key, "systemone")


def _rename_type(node: Any) -> Iterator[_Edit]:
    for _, value in _pairs(node, "type"):
        if isinstance(value, yaml.ScalarNode) and value.value == "decision":
            yield _replace(value, "systemone")


def _rename_conditions(rules: Any, notes: list[str]) -> Iterator[_Edit]:
    yield from _rename_type(rules)
    yield from _split_label(rules, notes)
    for condition in _get(rules, "conditions", "*"):
        yield from _rename_conditions(condition, notes)


def _split_label(condition: Any, notes: list[str]) -> Iterator[_Edit]:
    """The label that the older dialect wrote behind the rule's name ("reference.md" 4.2) on a key of its own."""
    if [str(kind.value) for kind in _get(condition, "type")] != ["complexity"] or _pairs(condition, "label"):
        return
    for key, value in _pairs(condition, "name"):
        rule, _, label = str(value.value).rpartition(":")
        if not rule or label not in _COMPLEXITIES or not isinstance(value, yaml.ScalarNode):
            continue
        quote = value.style if value.style in {"'", '"'} else ""
        between = ", " if condition.flow_style else "\n" + " " * int(key.start_mark.column)
        notes.append(f"line {_line(value)}: the label {label} of {rule} stands on its own now")
        yield _replace(value, f"{quote}{rule}{quote}{between}label: {label}")


def _rename_algorithm(algorithm: Any, notes: list[str]) -> Iterator[_Edit]:
    yield from _rename_type(algorithm)
    for key, _ in _pairs(algorithm, "decision"):
        yield _replace(key, "systemone")
    for kind in _get(algorithm, "type"):
        if (instead := _REWRITE_BY_HAND.get(str(kind.value))) is not None:
            notes.append(f"line {_line(kind)}: rewrite the algorithm {kind.value} as {instead} by hand")


class _Section(NamedTuple):
    """A key with a block of lines under it, whose lines can be moved."""

    key: Any
    rest: str
    first: int
    last: int
    indent: int


def _section(lines: list[str], parent: Any, key: Any, value: Any, file: str) -> _Section:
    """The lines of a key's block: first and last index (exclusive) below the key's own line, and their indent."""
    rest = lines[key.end_mark.line][key.end_mark.column :].strip().removeprefix(":").strip()
    own_line = lines[key.start_mark.line][: key.start_mark.column].strip(" -") == ""
    if not own_line or value.flow_style or value.start_mark.line == key.start_mark.line or (rest and rest[0] != "#"):
        problem = "this routing is laid out so that it cannot be moved safely; put it on lines of its own"
        line, column = key.start_mark.line + 1, key.start_mark.column + 1
        raise ConfigError([Problem("error", file, line, column, "routing", problem)])
    indent = int(value.start_mark.column)
    following = [other.start_mark.line for other, _ in parent.value if other.start_mark.line > key.start_mark.line]
    last = min(following, default=min(int(parent.end_mark.line) + (1 if parent.end_mark.column else 0), len(lines)))
    while last > key.start_mark.line + 1 and _outside(lines[last - 1], indent):
        last -= 1
    return _Section(key, rest, key.start_mark.line + 1, last, indent)


def _outside(line: str, indent: int) -> bool:
    """Blank lines, and comments that stand further left, belong to what comes after a block."""
    stripped = line.strip()
    return not stripped or (stripped.startswith("#") and len(line) - len(line.lstrip()) < indent)


def _shifted(lines: list[str], by: int) -> list[str]:
    """Lines moved right (or left, as far as they go)."""
    if by >= 0:
        return [" " * by + line if line.strip() else line for line in lines]
    return [line[min(-by, len(line) - len(line.lstrip(" "))) :] for line in lines]


def _offset(lines: list[str], line: int) -> int:
    return sum(len(text) for text in lines[:line])


def _unnest(text: str, file: str) -> list[_Edit] | None:
    """Take one recipe's own `routing` apart: its content moves to the recipe's level."""
    lines = text.splitlines(keepends=True)
    for recipe in _get(_root(text), "recipes", "*"):
        for key, value in _pairs(recipe, "routing"):
            if not isinstance(value, yaml.MappingNode):
                return [_Edit(key.start_mark.index, key.end_mark.index, "signals")]
            section = _section(lines, recipe, key, value, file)
            moved = _shifted(lines[section.first : section.last], key.start_mark.column - section.indent)
            comment = [" " * key.start_mark.column + section.rest + "\n"] if section.rest else []
            start = _offset(lines, key.start_mark.line)
            if lines[key.start_mark.line][: key.start_mark.column].strip():  # `- routing:` opens the recipe's item
                moved[0] = lines[key.start_mark.line][: key.start_mark.column] + moved[0].lstrip(" ")
            return [_Edit(start, _offset(lines, section.last), "".join([*comment, *moved]))]
    return None


def _wrap_routing(text: str, file: str, notes: list[str]) -> str:
    """The top-level `routing` becomes the recipe `default`."""
    root = _root(text)
    for key, value in _pairs(root, "routing"):
        names = [name.value for name in _get(root, "recipes", "*", "name")]
        if "default" in names:
            problem = "there is a top-level routing and a recipe named default: one of them must go"
            raise ConfigError([Problem("error", file, _line(key), 1, "routing", problem)])
        notes.append(f"line {_line(key)}: the top-level routing is now the recipe default")
        if isinstance(value, yaml.MappingNode) and not value.value:
            return _apply(text, [_Edit(key.start_mark.index, value.end_mark.index, "recipes: [{name: default}]")])
        lines = text.splitlines(keepends=True)
        if not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        section = _section(lines, root, key, value, file)
        body = lines[section.first : section.last]
        recipes = next(_get(root, "recipes"), None)
        rest = f" {section.rest}" if section.rest else ""
        if recipes is None:
            head = [f"recipes:{rest}\n", " " * _ITEM_INDENT + "- name: default\n"]
            moved = _shifted(body, _ITEM_INDENT + 2 - section.indent)
            return "".join([*lines[: section.first - 1], *head, *moved, *lines[section.last :]])
        return _merge(lines, section, body, recipes, file)
    return text


def _merge(lines: list[str], section: _Section, body: list[str], recipes: Any, file: str) -> str:
    """Put the block in front of the recipes that exist already."""
    if not isinstance(recipes, yaml.SequenceNode) or recipes.flow_style:
        problem = "recipes is not a list of lines, so routing cannot be moved into it"
        raise ConfigError([Problem("error", file, _line(recipes), recipes.start_mark.column + 1, "recipes", problem)])
    indent, line = int(recipes.start_mark.column), int(recipes.start_mark.line)
    comment = [" " * indent + section.rest + "\n"] if section.rest else []
    item = [*comment, " " * indent + "- name: default\n", *_shifted(body, indent + 2 - section.indent)]
    pieces = {line: item}
    result: list[str] = []
    for number, text in enumerate(lines):
        result.extend(pieces.get(number, ()))
        if not section.first - 1 <= number < section.last:
            result.append(text)
    return "".join(result)


def _set_version(text: str, notes: list[str]) -> str:
    root = _root(text)
    for _, value in _pairs(root, "version"):
        if value.value in OLD_VERSIONS:
            notes.append(f"line {_line(value)}: version {value.value} is now {VERSION}")
            return _apply(text, [_replace(value, VERSION)])
        return text
    notes.append(f"version: {VERSION} was added")
    first = root.value[0][0].start_mark
    return text[: first.index] + f"version: {VERSION}\n\n" + text[first.index :]
