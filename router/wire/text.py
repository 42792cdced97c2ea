"""The one way that text is taken out of a message: every rule, guard and plugin reads what these functions return.

Unknown part types are tolerated, and are read where they carry `text` or `content`. Media, thinking and encrypted parts
keep what they hold under other keys, and so are not read. Source: reference.md 6.1 (question state).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, Final, overload

import orjson

from router.wire.document import Object, refuse_lookalikes, wrong
from router.wire.longtext import LongText, Words, byte_length, pieces_of
from router.wire.neutral import ToolText

_MAX_NESTING: Final = 16
_TEXT_PARTS: Final = frozenset({"text", "input_text", "output_text", None})
_OWN_KEYS: Final = ("title", "context", "text", "refusal", "reason", "logs", "stdout", "stderr")
_WORD_KEYS: Final = frozenset({*_OWN_KEYS, "source", "content"})
_OPEN: Final = "<system-reminder>"
_CLOSE: Final = "</system-reminder>"


def content_text(content: Any, where: str, depth: int = 0) -> Words:
    """The text of a message's content: a string, an array of parts joined by line ends, or null.

    Raises `BadRequest` that names `where` for anything else, and for content nested beyond any real use.
    """
    if content is None:
        return ""
    if type(content) is str or type(content) is LongText:
        return content
    if type(content) is not list:
        raise wrong(where, "a string, an array of parts or null")
    if depth > _MAX_NESTING:
        raise wrong(where, "nested less deeply")
    return join(part_text(part, f"{where}[{index}]", depth + 1) for index, part in enumerate(content))


def part_text(part: Any, where: str, depth: int = 0) -> Words:
    """The text of one part, "" when it carries none. Raises `BadRequest` unless it is an object, a string or null."""
    if part is None:
        return ""
    if type(part) is str:
        return part
    if type(part) is not dict:
        raise wrong(where, "an object")
    refuse_lookalikes(part, where)
    kind = part.get("type")
    text = part.get("text")
    if type(text) is LongText:
        return text
    if type(text) is str:
        if plain_part(part):
            return text
    elif text is not None and (type(kind) is not str or kind in _TEXT_PARTS):
        raise wrong(f"{where}.text", "a string")
    return "" if part.keys().isdisjoint(_WORD_KEYS) else join(_words(part, where, depth))


def plain_part(part: Object) -> bool:
    """Whether a part holds nothing but its text, as nearly every part does."""
    return len(part) == 1 or (len(part) == 2 and "type" in part)


def call_text(name: Any, arguments: Any) -> str:
    """A tool call as text: its name, then its arguments as they were written (an object as compact JSON)."""
    written = arguments if type(arguments) is str else "" if arguments is None else orjson.dumps(arguments).decode()
    return join([name if type(name) is str else "", written], " ")


def tool_texts(tools: Any, where: str = "tools") -> tuple[ToolText, ...]:
    """Names and descriptions of the tools on offer. Built-in tools without a name go by their type."""
    if tools is None:
        return ()
    if type(tools) is not list:
        raise wrong(where, "an array")
    return tuple([_tool_text(tool, f"{where}[{index}]") for index, tool in enumerate(tools)])


@overload
def join(texts: Iterable[str], separator: str = "\n") -> str: ...
@overload
def join(texts: Iterable[Words], separator: str = "\n") -> Words: ...
def join(texts: Iterable[Words], separator: str = "\n") -> Words:
    """The texts that are not empty, joined; a long text if one of several is."""
    kept = [text for text in texts if text]
    if len(kept) == 1:
        return kept[0]
    short = [text for text in kept if isinstance(text, str)]
    return separator.join(short) if len(short) == len(kept) else long_join(kept, separator)


def long_join(texts: Iterable[Words], separator: str) -> LongText:
    """Texts joined into a long one, piece by piece."""
    parts = list(chain.from_iterable((separator, text) for text in texts))[1:]
    return LongText((piece for part in parts for piece in pieces_of(part)), sum(map(byte_length, parts)))


def own_words(text: str) -> str:
    """`text` without its `<system-reminder>` blocks, which clients add for the user. An open block is left as it is."""
    if _OPEN not in text:
        return text.strip()
    kept: list[str] = []
    position = 0
    while (start := text.find(_OPEN, position)) >= 0:
        end = text.find(_CLOSE, start)
        if end < 0:
            break
        kept.append(text[position:start])
        position = end + len(_CLOSE)
    kept.append(text[position:])
    return "".join(kept).strip()


def _words(part: Object, where: str, depth: int) -> Iterable[Words]:
    """Every text of a part that is more than plain text: refusals, documents, what tools and searches gave, and what is
    nested."""
    for key in _OWN_KEYS:
        value = part.get(key)
        if type(value) is str:
            yield value
    source = part.get("source")
    if type(source) is dict:
        refuse_lookalikes(source, f"{where}.source")
        if source.get("type") == "text" and type(source.get("data")) is str:
            yield source["data"]
        yield _nested(source.get("content"), f"{where}.source.content", depth)
    yield _nested(part.get("content"), f"{where}.content", depth)


def _nested(content: Any, where: str, depth: int) -> Words:
    if type(content) is dict:
        if depth > _MAX_NESTING:
            raise wrong(where, "nested less deeply")
        return part_text(content, where, depth + 1)
    return content_text(content, where, depth) if type(content) in {str, list} else ""


def _tool_text(tool: Any, where: str) -> ToolText:
    if type(tool) is not dict:
        raise wrong(where, "an object")
    refuse_lookalikes(tool, where)
    kind = tool.get("type")
    inner = tool
    if type(kind) is str and type(tool.get(kind)) is dict:  # Chat wraps: {"type": "function", "function": {...}}
        inner = tool[kind]
        refuse_lookalikes(inner, f"{where}.{kind}" if kind in {"function", "custom"} else where)
    name = _first(inner.get("name"), tool.get("server_label"), kind)
    return ToolText(name, _first(inner.get("description"), tool.get("server_description")))


def _first(*values: Any) -> str:
    return next((value for value in values if type(value) is str and value), "")
