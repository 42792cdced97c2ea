"""JSON Schemas of request bodies, as `GET /openapi.json` shows them."""

from __future__ import annotations

from .openapi_shapes import FLAG, FULL, SHARE, STRUCTURED, TEXT, WORDED, Schema, closed, keyed, many, ref, shape, typed
from .question_body import MOST_CANDIDATES

_DESCRIPTIONS: Schema = {"anyOf": [*STRUCTURED["anyOf"], {"type": "null"}]}
_KEYED_LIST = closed({"key": FULL, "description": _DESCRIPTIONS}, "key")
_READING: Schema = {
    "instructions": WORDED,
    "over": {"anyOf": [{"type": "string", "minLength": 1}, many({"type": "string", "minLength": 1}, 1)]},
    "preset": FULL,
    "require_full_input": FLAG,
    "overflow": {"enum": ["window", "truncate"]},
}


def _question(kind: str, options: str, listed: str, counts: tuple[int, int], more: Schema) -> Schema:
    """A question whose options stand in `criteria`, or in a list under `listed`."""
    of = many(WORDED, *counts) if kind == "score" else keyed(_DESCRIPTIONS, *counts)
    ordered = many(WORDED if kind == "score" else _KEYED_LIST, *counts)
    return typed(kind, _READING | {options: of, listed: ordered} | more)


_NOUL = _question("noul", "criteria", "choices", (0, 2), {}) | {
    "description": "A yes or no question. `criteria` may describe `true` and `false`."
}
_SIMILARITY = typed(
    "similarity",
    {key: _READING[key] for key in ("over", "require_full_input", "overflow")}
    | {"candidates": many(FULL, 1, MOST_CANDIDATES)},
    "candidates",
) | {
    "description": "How alike the state is to each of these texts. Not part of System One: an extension of this server."
}
_THRESHOLD: Schema = {"threshold": SHARE}

REQUESTS: dict[str, Schema] = {
    "Question": {
        "description": "One of criteria and the list; instructions unless a preset brings them.",
        "oneOf": [
            _NOUL,
            _question("choice", "criteria", "choices", (2, 255), {}),
            _question("score", "criteria", "levels", (2, 10), {}),
            _question("set", "criteria", "labels", (1, 255), _THRESHOLD),
            _question("span", "criteria", "labels", (1, 255), _THRESHOLD | {"head": {"enum": ["router", "broad"]}}),
            _SIMILARITY,
        ],
    },
    "Questions": keyed(ref("Question"), 1),
    "State": STRUCTURED | {"description": "Text, or named parts, or a list of them."},
    "Options": closed({"deadline_ms": {"type": "number", "exclusiveMinimum": 0}, "return_meta": FLAG}),
    "SystemOneRequest": {
        "description": "A state with questions, or named states with their own. Unknown fields are passed over.",
        **shape(
            {
                "model": {"type": "string", "minLength": 1},
                "state": ref("State"),
                "questions": ref("Questions"),
                "states": keyed(
                    closed({"state": ref("State"), "questions": ref("Questions")}, "state", "questions"), 1
                ),
                "options": ref("Options"),
            }
        ),
        "anyOf": [{"required": ["state", "questions"]}, {"required": ["states"]}],
    },
    "BatchRequest": {
        "description": "At most 1,024 states times questions; ids of states differ.",
        **shape(
            {
                "model": {"type": "string", "minLength": 1},
                "states": many(
                    closed({"id": FULL | {"maxLength": 128}, "state": ref("State")}, "id", "state"), 1, 1024
                ),
                "questions": ref("Questions"),
                "options": ref("Options"),
            },
            "states",
            "questions",
        ),
    },
    "Part": {
        "oneOf": [
            shape({"type": {"const": "input_text"}, "text": TEXT}, "type", "text"),
            shape({"type": {"const": "output_text"}, "text": TEXT}, "type", "text"),
            shape({"type": {"const": "refusal"}, "refusal": TEXT}, "type", "refusal"),
            shape(
                {"type": {"const": "input_json"}, "data": {"anyOf": [{"type": "object"}, {"type": "array"}]}},
                "type",
                "data",
            ),
        ]
    },
    "Content": {"anyOf": [TEXT, many(ref("Part"))]},
    "Wording": {
        "anyOf": [FULL, many(shape({"type": {"const": "input_text"}, "text": FULL}, "type", "text"), 1)],
    },
    "InputItem": {
        "oneOf": [
            shape(
                {
                    "type": {"const": "message"},
                    "role": {"enum": ["user", "developer", "system", "assistant"]},
                    "content": ref("Content"),
                },
                "role",
                "content",
            ),
            shape({"type": {"const": "function_call"}, "name": TEXT, "arguments": TEXT}, "type", "name", "arguments"),
            shape({"type": {"const": "custom_tool_call"}, "name": TEXT, "input": TEXT}, "type", "name", "input"),
            shape(
                {
                    "type": {"enum": ["function_call_output", "custom_tool_call_output"]},
                    "output": ref("Content"),
                },
                "type",
                "output",
            ),
        ]
    },
    "DecisionsQuestion": {
        "oneOf": [
            typed("predicate", {"instructions": ref("Wording"), "name": TEXT}, "instructions"),
            typed(
                "choice",
                {
                    "instructions": ref("Wording"),
                    "name": TEXT,
                    "choices": many(closed({"value": {"anyOf": [FULL, FLAG]}, "description": TEXT}, "value"), 2, 255),
                },
                "instructions",
                "choices",
            ),
            typed(
                "score",
                {
                    "instructions": ref("Wording"),
                    "name": TEXT,
                    "levels": many(closed({"label": FULL, "description": TEXT}, "label"), 2, 10),
                },
                "instructions",
                "levels",
            ),
        ]
    },
    "DecisionsRequest": {
        "description": 'OpenAI\'s form. Values of a choice differ as text: true and "true" are one.',
        **shape(
            {
                "model": {"type": "string", "minLength": 1},
                "input": {"anyOf": [TEXT, many(ref("InputItem"), 1)]},
                "questions": many(ref("DecisionsQuestion"), 1, 400),
                "options": ref("Options"),
                "safety_identifier": {"type": ["string", "null"]},
                "prompt_cache_key": {"type": ["string", "null"]},
                "prompt_cache_options": {"type": ["object", "null"]},
            },
            "input",
            "questions",
        ),
        "not": {"anyOf": [{"required": ["state"]}, {"required": ["states"]}]},
    },
}
