"""`multipart/form-data` of System One: a part `request` with the JSON body, then one part for each asset's bytes."""

from __future__ import annotations

from dataclasses import dataclass
from email.message import Message

from .body import BadBody, Problem

REQUEST_PART = "request"
_FORM = "multipart/form-data"
_MOST_PARTS = 64
_MOST_HEAD = 4096


@dataclass(frozen=True, slots=True)
class Form:
    """The JSON body as bytes, and the other parts by name."""

    request: bytes
    parts: dict[str, bytes]


def boundary_of(content_type: str) -> str | None:
    """The boundary of a multipart form's content type; None for every other type of content."""
    if _FORM not in content_type.lower():
        return None  # told at once: the reading of parameters costs more than the rest of a small request
    message = Message()
    message["Content-Type"] = content_type
    if message.get_content_type() != _FORM:
        return None
    boundary = message.get_param("boundary")
    return boundary if isinstance(boundary, str) else ""


def read_form(data: bytes, boundary: str) -> Form:
    """Split a form. Raises BadBody (malformed) for what is no form, or has no part `request`."""
    if not 1 <= len(boundary) <= 70 or not boundary.isascii():
        raise _malformed("the content type names no boundary")
    pieces = (b"\r\n" + data).split(b"\r\n--" + boundary.encode(), _MOST_PARTS + 2)
    if len(pieces) < 3 or not pieces[-1].startswith(b"--"):
        raise _malformed(f"the form is cut short, or has more than {_MOST_PARTS} parts")
    parts: dict[str, bytes] = {}
    for piece in pieces[1:-1]:
        name, content = _part(piece)
        if name in parts:
            raise _malformed("two parts have one name")
        parts[name] = content
    request = parts.pop(REQUEST_PART, None)
    if request is None:
        raise _malformed(f"the form has no part named {REQUEST_PART}")
    return Form(request, parts)


def _part(piece: bytes) -> tuple[str, bytes]:
    padding, line, rest = piece.partition(b"\r\n")
    head, blank, content = rest.partition(b"\r\n\r\n")
    if padding.strip(b" \t") or not line or not blank or len(head) > _MOST_HEAD:
        raise _malformed("a part has no head")
    for field in head.decode("latin-1").split("\r\n"):
        key, _, value = field.partition(":")
        if key.strip().lower() == "content-disposition":
            message = Message()
            message["Content-Disposition"] = value.strip()
            name = message.get_param("name", header="Content-Disposition")
            if isinstance(name, str) and name:
                return name, content
    raise _malformed("a part has no name")


def _malformed(message: str) -> BadBody:
    return BadBody([Problem(("body",), message, "multipart_invalid")], malformed=True)
