"""Requests about code, out of Django: functions to complete, snippets to explain or repair, titles of changes."""

from __future__ import annotations

import ast
import random
import re
import textwrap
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from train.data.packages import excerpt
from train.data.sources import DJANGO

_FOLDER: Final = DJANGO.file.removesuffix(".tar.gz")
_CHANGE: Final = re.compile(
    r"^\* ((?:Fixed|Added|Corrected|Made|Prevented|Allowed|Removed|Adjusted|Reallowed)[^*]{20,260})", re.M
)
_MARKUP: Final = re.compile(r":\w+:`~?!?([^`<]+)[^`]*`|``([^`]+)``")
_TICKET: Final = re.compile(r"\s*\((?::?ticket[^)]*|#?\d{4,6})\)")
_ASKS: Final = (
    "Explain this code:\n{c}",
    "What does this function do?\n{c}",
    "```python\n{c}\n```\nWhy does this fail for an empty input?",
    "Refactor:\n{c}",
    "Write tests for\n{c}",
    "Translate to TypeScript:\n{c}",
    "{c}\n\nIs there a bug in here?",
    "Add type hints\n\n{c}",
    "{c}",
)
_LONGEST: Final = 900


def request(rng: random.Random) -> str:
    """One request."""
    kind = rng.random()
    if kind < 0.35:
        return rng.choice(_changes())
    if kind < 0.7:
        return rng.choice(_stubs())
    return rng.choice(_ASKS).replace("{c}", rng.choice(_functions()))


@cache
def _changes() -> Sequence[str]:
    """What a release changed, as the title of a change."""
    found: dict[str, None] = {}
    for _, data in excerpt(DJANGO, f"{_FOLDER}/docs/releases/*.txt"):
        for text in _CHANGE.findall(data.decode("utf-8")):
            plain = " ".join(_TICKET.sub("", _MARKUP.sub(lambda part: part[1] or part[2], text)).split()).rstrip(".")
            found.setdefault(plain.replace("Django", "the framework"))
    return tuple(found)


@cache
def _stubs() -> Sequence[str]:
    """Functions without their bodies: a signature and what it should do."""
    return tuple(f"{head}\n    {quoted}" for head, quoted, _ in _parsed() if len(quoted) > 60)


@cache
def _functions() -> Sequence[str]:
    return tuple(text for _, _, text in _parsed() if 80 < len(text) <= _LONGEST)


@cache
def _parsed() -> Sequence[tuple[str, str, str]]:
    return tuple(_read())


def _read() -> Iterator[tuple[str, str, str]]:
    """The head, documentation and whole text of the functions that have documentation."""
    for _, data in excerpt(
        DJANGO, f"{_FOLDER}/django/utils/*.py", f"{_FOLDER}/django/db/models/*.py", f"{_FOLDER}/django/core/*.py"
    ):
        text = data.decode("utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and (doc := ast.get_docstring(node)) and len(doc) < _LONGEST:
                arguments = ", ".join(part.arg for part in node.args.args if part.arg not in ("self", "cls"))
                quoted = '"""' + textwrap.indent(doc, "    ").strip() + '\n    """'
                whole = textwrap.dedent(ast.get_source_segment(text, node) or "")
                yield f"def {node.name}({arguments}):", quoted, whole
