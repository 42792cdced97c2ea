"""Every committed example validates, against the loader and against the schema."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from router.config.document import parse
from router.config.load import load
from router.config.schema import config_schema
from router.runtime import artifact
from tests.support.config_samples import GOOD, describe
from tests.support.warnings import unexpected

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))
COMMITTED = ROOT / "router" / "config" / "pointsman.schema.json"

KINDS: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}


def mistakes(schema: dict[str, Any], value: Any, root: dict[str, Any], at: str = "") -> list[str]:  # noqa: PLR0912 - one branch a keyword
    """A small validator of the keywords that our schema uses."""
    if "$ref" in schema:
        return mistakes(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], value, root, at)
    found: list[str] = []
    if "not" in schema and not mistakes(schema["not"], value, root, at):
        found.append(f"{at}: not allowed")
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            good = sum(not mistakes(choice, value, root, at) for choice in schema[keyword])
            if good == 0 or (keyword == "oneOf" and good != 1):
                found.append(f"{at}: {good} of {keyword}")
    if "type" in schema:
        right = isinstance(value, KINDS[schema["type"]])
        if not right or (isinstance(value, bool) and schema["type"] in ("integer", "number")):
            return [*found, f"{at}: is no {schema['type']}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at}: not in enum")
    if "const" in schema and value != schema["const"]:
        found.append(f"{at}: not the constant")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        found.append(f"{at}: pattern")
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        found.extend(f"{at}: {key} is missing" for key in schema.get("required", ()) if key not in value)
        for key, item in value.items():
            inner = properties.get(key, schema.get("additionalProperties", {}))
            found += [f"{at}.{key}: unknown"] if inner is False else mistakes(inner, item, root, f"{at}.{key}")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append(f"{at}: number of items")
        for index, item in enumerate(value):
            found += mistakes(schema.get("items", {}), item, root, f"{at}[{index}]")
    if isinstance(value, int | float) and not isinstance(value, bool):
        inside = schema.get("minimum", value) <= value <= schema.get("maximum", value)
        if not inside:
            found.append(f"{at}: out of bounds")
    return found


def test_there_are_examples() -> None:
    assert {path.name for path in EXAMPLES} >= {
        "needs-tools.yaml",
        "hard-code.yaml",
        "effort-projection.yaml",
        "set-and-span.yaml",
    }


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_example_validates(path: Path) -> None:
    loaded = load(path, environ={}, describe=artifact.describe, serving=True)
    assert unexpected(loaded.warnings) == []
    assert loaded.plan.entrypoints


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_example_has_the_schema_and_fits_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    match = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)
    assert match is not None
    assert (path.parent / match[1]).resolve() == COMMITTED
    schema = config_schema()
    assert mistakes(schema, parse(text, file=path.name, environ={}).value, schema) == []


def test_the_committed_schema_is_the_generated_one() -> None:
    assert json.loads(COMMITTED.read_text(encoding="utf-8")) == config_schema()


@pytest.mark.parametrize(
    "edit",
    [
        ("port: 8801", "prt: 8801"),
        ("port: 8801", "port: 0"),
        ("rules: {}", "rules: {type: systemone}"),
        ("rules: {}", "rules: {}\n        annotations: {}"),
        ("rules: {}", "rules: {}\n        plugins: [{type: rag}]"),
        ("type: noul", "type: noun"),
        ("- key: math", "- kye: math"),
        ("version: v0.5", "version: v0.3"),
    ],
)
def test_the_schema_sees_mistakes_of_shape(edit: tuple[str, str]) -> None:
    schema = config_schema()
    assert mistakes(schema, parse(GOOD, file="", environ={}).value, schema) == []
    text = GOOD.replace(*edit, 1)
    assert text != GOOD
    assert mistakes(schema, parse(text, file="", environ={}).value, schema) != []


def test_the_schema_lets_numbers_come_from_the_environment() -> None:
    schema = config_schema()
    value = parse(GOOD.replace("port: 8801", "port: ${PORT}"), file="", environ={}).value
    assert mistakes(schema, value, schema) == []


def test_the_schema_marks_what_is_not_built() -> None:
    annotations = config_schema()["$defs"]["Decision"]["properties"]["annotations"]
    assert annotations == {"description": "Not supported yet.", "deprecated": True, "not": {}}
    assert '"null"' not in json.dumps(config_schema())


def test_loading_is_fast() -> None:
    load(GOOD, environ={}, describe=describe, serving=True)
    best = min(_timed() for _ in range(5))
    assert best < 0.2


def _timed() -> float:
    start = time.perf_counter()
    load(GOOD, environ={}, describe=describe, serving=True)
    return time.perf_counter() - start
