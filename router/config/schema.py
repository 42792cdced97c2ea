"""The JSON Schema of the dialect, for editors: completion, descriptions, and red lines under keys that do not exist.

Made from the models, so it cannot say anything else than the loader. It knows shapes, not references between parts.
"""

from __future__ import annotations

from typing import Any

from router.config.model.root import Root

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = "EnvironmentReference"


def config_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) of a v0.5 document.

    Keys that the dialect has and this version does not build are listed as deprecated and accept no value. Numbers and
    booleans may also be one `${NAME}`.
    """
    schema = _simplified(Root.model_json_schema(by_alias=True), ())
    schema["$defs"][_REFERENCE] = {
        "description": "The value of an environment variable.",
        "type": "string",
        "pattern": r"^\$\{[A-Za-z_][A-Za-z0-9_]*\}$",
    }
    schema["$defs"] = dict(sorted(schema["$defs"].items()))
    return {"$schema": DIALECT, **schema}


def _simplified(node: Any, path: tuple[str, ...]) -> Any:
    """Without pydantic's titles of fields, nulls (a null is never a value here) and defaults that mean "absent"."""
    if isinstance(node, list):
        return [_simplified(item, path) for item in node]
    if not isinstance(node, dict):
        return node
    names = bool(path) and path[-1] in ("properties", "$defs")
    node = {key: _simplified(value, (*path, key)) for key, value in node.items()}
    if names:
        return node
    if len(path) >= 2 and path[-2] == "properties":
        node.pop("title", None)
    if node.get("default", node) in (None, [], {}):
        node.pop("default", None)
    node.pop("discriminator", None)
    if "anyOf" in node:
        node = _without_null(node)
    if node.get("type") in ("integer", "number", "boolean"):
        keep = {key: node.pop(key) for key in ("description", "default", "deprecated", "title") if key in node}
        return {"anyOf": [node, {"$ref": f"#/$defs/{_REFERENCE}"}], **keep}
    return node


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    choices = [choice for choice in node.pop("anyOf") if choice != {"type": "null"}]
    if len(choices) == 1:
        return {**choices[0], **node}
    return {"anyOf": choices, **node}
