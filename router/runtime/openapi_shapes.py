"""What the schemas of `GET /openapi.json` are made of."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

FULL: Schema = {"type": "string", "pattern": r"\S"}
STRUCTURED: Schema = {"anyOf": [{"type": "string"}, {"type": "object"}, {"type": "array"}]}
WORDED: Schema = {"anyOf": [FULL, {"type": "object"}, {"type": "array"}]}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
COUNT: Schema = {"type": "integer", "minimum": 0}
TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
SHARES: Schema = {"type": "object", "additionalProperties": SHARE}


def ref(name: str) -> Schema:
    """A reference to a schema of the document, by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def closed(properties: Schema, *required: str) -> Schema:
    """An object that has no other fields."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def shape(properties: Schema, *required: str) -> Schema:
    """An object that may have other fields."""
    return {"type": "object", "properties": properties, "required": list(required)}


def many(items: Schema, least: int = 0, most: int | None = None) -> Schema:
    """A list."""
    return {"type": "array", "items": items, "minItems": least} | ({} if most is None else {"maxItems": most})


def keyed(values: Schema, least: int = 0, most: int | None = None) -> Schema:
    """An object of values under keys that are not blank."""
    bounds = {"minProperties": least} | ({} if most is None else {"maxProperties": most})
    return {"type": "object", "propertyNames": FULL, "additionalProperties": values, **bounds}


def typed(kind: str, properties: Schema, *required: str) -> Schema:
    """An object of a `type`, without other fields."""
    return closed({"type": {"const": kind}, **properties}, "type", *required)
