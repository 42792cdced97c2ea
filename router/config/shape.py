"""From a document to the dialect's models, collecting every mistake of shape.

Pydantic stops looking inside what it cannot read, so it is asked again and again: what it refused is reported, cut out
of a copy of the tree, and the rest is read once more. What is missing only because it was cut is not reported.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from router.config.document import Block, Document, Items
from router.config.model.base import NOT_YET, RENAMED, WRONG
from router.config.model.plugins import LATER_PLUGINS
from router.config.model.root import Root
from router.config.problems import Path, nearest
from router.config.scalars import NULL

_TYPES = {
    "model_type": "must be a mapping of keys to values",
    "dict_type": "must be a mapping of keys to values",
    "model_attributes_type": "must be a mapping of keys to values",
    "list_type": "must be a list",
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "finite_number": "must be a finite number",
    "string_too_short": "must not be empty",
}
_BOUNDS = {
    "greater_than": ("must be greater than", "gt"),
    "greater_than_equal": ("must be at least", "ge"),
    "less_than": ("must be less than", "lt"),
    "less_than_equal": ("must be at most", "le"),
}
_LENGTHS = {"too_short": ("at least", "min_length"), "too_long": ("at most", "max_length")}
_BOOLEAN_WORDS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
_LATER = dict.fromkeys(("box", "track"), "question type") | dict.fromkeys(LATER_PLUGINS, "plugin")
_MAX_LISTED = 16


def read(document: Document) -> tuple[Root | None, frozenset[Path]]:
    """The document as models, without the parts that could not be read, and the paths of those parts.

    None when nothing is left. Problems go to `document.problems`. The document's own tree is not changed.
    """
    reading = _Reading(document)
    while True:
        try:
            return Root.model_validate(reading.tree), frozenset(reading.cut)
        except ValidationError as error:
            if not reading.cut_out(error):
                return None, frozenset(reading.cut)


class _Reading:
    """One document being read: the shrinking copy of its tree."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.tree: Any = _copy(document.value)
        self.cut: set[Path] = set()

    def cut_out(self, error: ValidationError) -> bool:
        """Report every mistake and cut it out; False when the root itself is what is wrong."""
        doomed: list[Path] = []
        for mistake in error.errors(include_url=False):
            path, missing = self.locate(mistake["loc"])
            if missing is not None:
                self.report_missing(path, missing)
                doomed.append(path)
            elif mistake["type"].startswith("union_tag"):
                doomed.append(self.report_tag(path, mistake))
            else:
                self.report(path, mistake)
                doomed.append(path)
        for path in doomed:
            self.remove(path)
        return () not in self.cut

    def locate(self, loc: tuple[str | int, ...]) -> tuple[Path, str | None]:
        """The place in the document of pydantic's location, and the key that is missing there, if that is the mistake.

        Locations also hold the tags of unions, which are no keys of the document.
        """
        current: Any = self.tree
        path: Path = ()
        missing: str | None = None
        for part in loc:
            missing = None
            if isinstance(current, Block) and part in current:
                current, path = current[str(part)], (*path, str(part))
            elif isinstance(current, Items) and isinstance(part, int) and part < len(current):
                current, path = current[part], current.paths[part]
            elif isinstance(current, Block) and current.reader is not None and part in _keys(current.reader):
                missing = str(part)
        return path, missing

    def value(self, path: Path) -> Any:
        current: Any = self.tree
        for part in path:
            if isinstance(current, Items):
                current = current[current.paths.index((*current.path, part))]
            else:
                current = current[str(part)]
        return current

    def remove(self, path: Path) -> None:
        """Cut a part out; its ancestors may be gone already."""
        self.cut.add(path)
        if not path:
            return
        try:
            parent = self.value(path[:-1])
            if isinstance(parent, Items):
                index = parent.paths.index(path)
                del parent[index], parent.paths[index]
            else:
                del parent[str(path[-1])]
        except (KeyError, ValueError):
            return

    def report_missing(self, path: Path, key: str) -> None:
        if (*path, key) not in self.cut:
            self.document.problem(path, f'missing key "{key}"', key=True)

    def report_tag(self, path: Path, mistake: Any) -> Path:
        """A question or plugin whose type is absent or unknown. Returns what to cut out."""
        block = self.value(path)
        if not isinstance(block, Block) or "type" not in block:
            if isinstance(block, Block):
                self.report_missing(path, "type")
            else:
                self.document.problem(path, _TYPES["model_type"])
            return path
        here = (*path, "type")
        kind = block["type"]
        if here in self.document.unset:
            return path
        allowed = [tag.strip(" '") for tag in mistake.get("ctx", {}).get("expected_tags", "").split(",")]
        if isinstance(kind, str) and kind in _LATER:
            self.document.problem(here, f"{_LATER[kind]} {self.document.shown(kind, here)} is not supported yet")
        elif kind is NULL:
            self.report_null(here)
        else:
            self.document.problem(
                here,
                f"{self.document.shown(kind, here)} is not one of: {', '.join(allowed)}",
                self.guess(kind, allowed, here),
            )
        return path

    def report_null(self, path: Path) -> None:
        self.document.problem(
            path, "has no value (null means nothing here)", "give it a value, or remove the key", key=True
        )

    def report(self, path: Path, mistake: Any) -> None:
        kind, context = mistake["type"], mistake.get("ctx", {})
        value = self.value(path)
        if kind == NOT_YET:
            message = context.get("message") or f'"{path[-1]}" is not supported yet'
            self.document.problem(path, message, key="message" not in context)
        elif kind == RENAMED:
            self.document.problem(path, f'"{path[-1]}" is a key of older dialects', context["instead"], key=True)
        elif kind == "extra_forbidden":
            self.report_unknown(path)
        elif path in self.document.unset or self.is_follow_up(kind, path):
            return
        elif value is NULL:
            self.report_null(path)
        elif kind == WRONG:
            on_key = mistake["loc"][-1] == "[key]"
            subject = f"the name {self.document.shown(path[-1])}" if on_key else self.document.shown(value, path)
            self.document.problem(path, f"{subject} {context['message']}", context.get("hint"), key=on_key)
        else:
            self.document.problem(path, *self.words(kind, context, value, path))

    def is_follow_up(self, kind: str, path: Path) -> bool:
        """A list that is too short only because items of it were cut out."""
        return kind == "too_short" and any(cut[: len(path)] == path for cut in self.cut)

    def report_unknown(self, path: Path) -> None:
        parent = self.value(path[:-1])
        known = [key for key, usable in _keys(parent.reader).items() if usable]
        name = str(path[-1])
        guess = nearest(name, [key for key in known if key not in parent])
        hint = f'did you mean "{guess}"?' if guess else None
        if hint is None and len(known) <= _MAX_LISTED:
            hint = f"known here: {', '.join(known)}"
        self.document.problem(path, f'unknown key "{name}"', hint, key=True)

    def words(self, kind: str, context: Any, value: Any, path: Path) -> tuple[str, str | None]:
        """Message and hint for a value of the wrong type or size."""
        shown = "" if isinstance(value, dict | list) else f", not {self.document.shown(value, path)}"
        if kind == "literal_error":
            allowed = [part.strip("'") for part in context["expected"].replace(" or ", ", ").split(", ")]
            return f"{self.document.shown(value, path)} is not one of: {', '.join(allowed)}", self.guess(
                value, allowed, path
            )
        if kind in _BOUNDS:
            text, key = _BOUNDS[kind]
            return f"{text} {context[key]}{shown}", None
        if kind in _LENGTHS:
            text, key = _LENGTHS[kind]
            count = context[key]
            return f"must have {text} {count} item{'' if count == 1 else 's'}, not {context['actual_length']}", None
        return _TYPES.get(kind, "is not valid here") + shown, self.conversion(kind, value, path)

    def guess(self, value: Any, allowed: list[str], path: Path) -> str | None:
        if not isinstance(value, str) or path in self.document.referenced:
            return None
        guess = nearest(value, allowed)
        return f'did you mean "{guess}"?' if guess else None

    def conversion(self, kind: str, value: Any, path: Path) -> str | None:
        """How to write what was probably meant."""
        if path in self.document.referenced:
            return None
        if kind == "bool_type" and isinstance(value, str):
            word = _BOOLEAN_WORDS.get(value.lower()) or (value.lower() if value.lower() in ("true", "false") else None)
            return f"write {word} (without quotes), not {value}" if word else None
        if kind == "string_type" and isinstance(value, int | float):
            return "put it in quotes to make it text"
        if kind in ("int_type", "float_type") and isinstance(value, str):
            return "write the number without quotes" if value.replace(".", "", 1).isdigit() else None
        return None


def _copy(value: Any) -> Any:
    """A copy of the containers; scalars are shared."""
    if isinstance(value, Block):
        block = Block(value.path)
        for key, item in value.items():
            block[key] = _copy(item)
        return block
    if isinstance(value, Items):
        items = Items(value.path)
        items.extend(_copy(item) for item in value)
        items.paths = list(value.paths)
        return items
    return value


def _keys(reader: Any) -> dict[str, bool]:
    """The keys of a model, and whether each may be written (False: not supported yet, or of an older dialect)."""
    return {field.alias or name: field.annotation is not type(None) for name, field in reader.model_fields.items()}
