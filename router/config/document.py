"""A YAML text as a tree of plain values in which every key and value knows its line and column.

Stricter than YAML: one document, text keys, no duplicate keys, no tags, no merge keys. Aliases are allowed and
expand within a budget, so that a few bytes cannot become gigabytes. Nothing here knows what the keys mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml

from router.config.problems import Path, Place, Problem, Severity, dotted
from router.config.scalars import NULL, BadReference, substitute

MAX_DEPTH = 64
MAX_NODES = 200_000

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Block(dict[str, Any]):
    """A mapping of the document. `reader` is the model that read it, once one did."""

    __slots__ = ("path", "reader")

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.reader: Any = None


class Items(list[Any]):
    """A sequence of the document. `paths` are those of the items in the text, also after some were taken out."""

    __slots__ = ("path", "paths")

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.paths: list[Path] = []


@dataclass(slots=True)
class Document:
    """A parsed text: its `value` for reading, and `raw`, the same with environment references left as written.

    `raw` is what names, revisions and error messages are made of, so that no variable's value ever shows.
    """

    file: str
    value: Block
    raw: dict[str, Any]
    keys: dict[Path, Place] = field(default_factory=dict)
    values: dict[Path, Place] = field(default_factory=dict)
    referenced: dict[Path, str] = field(default_factory=dict)
    expanded: dict[str, str] = field(default_factory=dict)
    unset: set[Path] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)

    def place(self, path: Path, *, key: bool = False) -> Place:
        """Where a value (or its key) stands; the nearest ancestor's place for what is not there."""
        for end in range(len(path), -1, -1):
            known = path[:end]
            first, second = (self.keys, self.values) if key or end < len(path) else (self.values, self.keys)
            if found := first.get(known) or second.get(known):
                return found
        return Place(1, 1)

    def problem(
        self, path: Path, message: str, hint: str | None = None, *, severity: Severity = "error", key: bool = False
    ) -> None:
        """Report at a path."""
        place = self.place(path, key=key)
        self.problems.append(Problem(severity, self.file, place.line, place.column, dotted(path), message, hint))

    def value_at(self, path: Path) -> Any:
        """The value at a path, or None."""
        current: Any = self.value
        for part in path:
            if isinstance(current, Block):
                current = current.get(str(part))
            elif isinstance(current, Items) and isinstance(part, int) and part < len(current):
                current = current[part]
            else:
                return None
        return current

    def shown(self, value: object, path: Path | None = None) -> str:
        """A value as an error may show it: what came from the environment appears as the reference."""
        if path is not None and path in self.referenced:
            return f'"{self.referenced[path]}"'
        if (text := self.expanded.get(str(value))) is not None:
            return f'"{text}"'
        if isinstance(value, str):
            return f'"{_on_one_line(value)}"' if len(value) <= 120 else f'"{_on_one_line(value[:117])}..."'
        if isinstance(value, bool):
            return "true" if value else "false"
        return repr(value)


def _on_one_line(text: str) -> str:
    """What does not print as its escape, so that a problem stays one line that editors can follow."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


class Unreadable(Exception):
    """The text is not a YAML document at all."""

    def __init__(self, place: Place, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.place, self.message, self.hint = place, message, hint


@dataclass(slots=True)
class _Node:
    place: Place
    scalar: str | None = None
    plain: bool = False
    items: list[_Node] | None = None
    pairs: list[tuple[_Node, _Node]] | None = None
    finished: bool = False


def parse(text: str, *, file: str, environ: Mapping[str, str]) -> Document:
    """Read a text. Lesser mistakes are in `problems` and left out of the tree.

    Raises `Unreadable` when the text is no YAML mapping at all.
    """
    root = _compose(text)
    document = Document(file, Block(()), {})
    if root is None or root.pairs is None:
        place = root.place if root is not None else Place(1, 1)
        what = "the document is empty" if root is None else "the document must be a mapping of keys to values"
        raise Unreadable(place, what, "start with `version: v0.5`")
    builder = _Builder(document, environ)
    document.value, document.raw = builder.mapping(root, ())
    return document


def _compose(text: str) -> _Node | None:
    """The node tree of a text, built from events without recursion so that depth is bounded before it hurts."""
    root: _Node | None = None
    stack: list[tuple[_Node, list[_Node]]] = []
    anchors: dict[str, _Node] = {}
    try:
        for event in yaml.parse(text, Loader=LOADER):
            place = _place(event.start_mark)
            if isinstance(event, yaml.DocumentStartEvent) and root is not None:
                raise Unreadable(place, "more than one YAML document", "keep one document in a file, without `---`")
            if isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
                node, children = stack.pop()
                if node.items is None:
                    node.pairs = list(zip(children[::2], children[1::2], strict=True))
                node.finished = True
                continue
            if isinstance(event, yaml.NodeEvent):
                node = _node(event, place, anchors)
                if stack:
                    stack[-1][1].append(node)
                else:
                    root = node
                if isinstance(event, yaml.CollectionStartEvent):
                    stack.append((node, node.items if node.items is not None else []))
                    if len(stack) > MAX_DEPTH:
                        raise Unreadable(place, f"nested deeper than {MAX_DEPTH} levels")
    except yaml.MarkedYAMLError as error:
        _refuse(error)
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = Place(before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise Unreadable(place, "a character that YAML does not allow") from None
    return root


def _place(mark: Any) -> Place:
    return Place(mark.line + 1, mark.column + 1)


def _node(event: Any, place: Place, anchors: dict[str, _Node]) -> _Node:
    if isinstance(event, yaml.AliasEvent):
        target = anchors.get(str(event.anchor))
        if target is None or not target.finished:
            raise Unreadable(place, f"the alias *{event.anchor} refers to nothing that is complete before it")
        return target
    tag = event.tag
    if tag is not None and tag != "!":
        raise Unreadable(place, "YAML tags are not allowed", "quote a value to make it text")
    node = _Node(place)
    if isinstance(event, yaml.ScalarEvent):
        node.scalar, node.plain, node.finished = event.value, event.style in (None, "") and tag is None, True
    elif isinstance(event, yaml.SequenceStartEvent):
        node.items = []
    if event.anchor is not None:
        anchors[event.anchor] = node
    return node


def _refuse(error: yaml.MarkedYAMLError) -> NoReturn:
    mark = error.problem_mark or error.context_mark
    place = _place(mark) if mark else Place(1, 1)
    problem = str(error.problem or error.context or "unreadable")
    hint = (
        "YAML indents with spaces, never with tabs" if "\\t" in problem or "cannot start any token" in problem else None
    )
    raise Unreadable(place, f"not readable as YAML: {problem}", hint) from None


@dataclass(slots=True)
class _Builder:
    """Turns nodes into values with paths, places and environment references."""

    document: Document
    environ: Mapping[str, str]
    count: int = 0

    def value(self, node: _Node, path: Path) -> tuple[Any, Any]:
        """The value at `path`, and its raw twin."""
        self.count += 1
        if self.count > MAX_NODES or len(path) > MAX_DEPTH:
            raise Unreadable(node.place, "aliases expand to too much", "write the values out")
        self.document.values[path] = node.place
        if node.pairs is not None:
            return self.mapping(node, path)
        if node.items is not None:
            items, raw = Items(path), []
            for index, child in enumerate(node.items):
                value, raw_value = self.value(child, (*path, index))
                items.append(value)
                items.paths.append((*path, index))
                raw.append(raw_value)
            return items, raw
        return self.scalar(node, path)

    def mapping(self, node: _Node, path: Path) -> tuple[Block, dict[str, Any]]:
        """A mapping; keys that cannot be used are reported and left out."""
        block, raw = Block(path), {}
        for key_node, value_node in node.pairs or ():
            key = self.key(key_node, path)
            if key is None:
                continue
            if key in block:
                first = self.document.keys[*path, key]
                self.at(key_node.place, path, f'duplicate key "{key}"', f"the first is in line {first.line}")
                continue
            self.document.keys[*path, key] = key_node.place
            block[key], raw[key] = self.value(value_node, (*path, key))
        return block, raw

    def key(self, node: _Node, path: Path) -> str | None:
        """A key's text. `true` and `false` may stand unquoted, as the sides of a yes/no question do."""
        if node.scalar is None:
            self.at(node.place, path, "a key must be text, not a list or a mapping")
            return None
        if node.plain and node.scalar == "<<":
            self.at(node.place, path, "merge keys (<<) are not allowed", "write the keys out")
            return None
        if not node.plain:
            return node.scalar
        value = substitute(node.scalar.replace("${", "$${"), plain=True, environ={}).value
        if isinstance(value, bool):
            return "true" if value else "false"
        if not isinstance(value, str):
            self.at(node.place, path, f"a key must be text, not {value!r}", f'quote it: "{node.scalar}"')
            return None
        return node.scalar

    def scalar(self, node: _Node, path: Path) -> tuple[Any, Any]:
        """A scalar with its references replaced."""
        text = node.scalar or ""
        try:
            found = substitute(text, plain=node.plain, environ=self.environ)
        except BadReference:
            self.document.problem(
                path, "only ${NAME} can be written here", "write $${ for a literal ${, and no default inside the braces"
            )
            self.document.unset.add(path)
            return text, text
        if found.referenced:
            self.document.referenced[path] = text
            self.document.expanded[str(found.value)] = text
        if found.unset:
            self.document.unset.add(path)
            names = ", ".join(found.unset)
            self.document.problem(path, f"environment variable {names} is not set", severity="warning")
        raw = text if found.referenced else None if found.value is NULL else found.value
        return found.value, raw

    def at(self, place: Place, path: Path, message: str, hint: str | None = None) -> None:
        """Report at a place rather than at a path's own."""
        file = self.document.file
        self.document.problems.append(Problem("error", file, place.line, place.column, dotted(path), message, hint))
