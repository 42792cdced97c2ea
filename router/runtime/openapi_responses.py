"""JSON Schemas of responses, as `GET /openapi.json` shows them."""

from __future__ import annotations

from .openapi_shapes import COUNT, FLAG, SHARE, SHARES, STRUCTURED, TEXT, Schema, closed, many, ref, shape, typed

_COVERAGE: Schema = {"input_coverage": {"enum": ["complete", "partial"]}}
_NAME: Schema = {"name": {"type": ["string", "null"]}}
_ANSWERED: Schema = {
    "answers": {"type": "object", "additionalProperties": ref("Answer")},
    "sets": {
        "type": "object",
        "additionalProperties": closed(
            {"selected": many(TEXT), "probabilities": SHARES, **_COVERAGE}, "selected", "probabilities"
        ),
    },
    "spans": {"type": "object", "additionalProperties": many(ref("Span"))},
    "thresholds": SHARES,
    "usage": ref("Usage"),
}

RESPONSES: dict[str, Schema] = {
    "Usage": closed({"input_tokens": COUNT, "output_tokens": COUNT}, "input_tokens", "output_tokens"),
    "Span": closed(
        {
            **{"label": TEXT, "start": COUNT, "end": COUNT, "text": TEXT, "probability": SHARE},
            **{"source": {"enum": ["model", "rule"]}, "rule": TEXT},
        },
        *("label", "start", "end", "text", "probability"),
    )
    | {"description": "Offsets count Unicode code points; `end` is exclusive. `source`: with `return_meta`."},
    "Answer": {
        "oneOf": [
            typed("noul", {"noul": SHARE, **_COVERAGE}, "noul"),
            typed(
                "choice",
                {"choice": TEXT, "confidence": SHARE, "probabilities": SHARES, **_COVERAGE},
                *("choice", "confidence", "probabilities"),
            ),
            typed(
                "score",
                {
                    "score": {"type": "number", "minimum": 0, "maximum": 9},
                    "confidence": SHARE,
                    "legend": {"type": "object", "additionalProperties": STRUCTURED},
                    "probabilities": SHARES,
                    **_COVERAGE,
                },
                *("score", "confidence", "legend", "probabilities"),
            ),
            typed(
                "similarity",
                {"similarities": many({"type": "number", "minimum": -1, "maximum": 1}, 1), **_COVERAGE},
                "similarities",
            ),
            closed({"type": TEXT, "error": ref("Failure"), "message": TEXT}, "type", "error"),
        ]
    },
    "Failure": {
        "enum": [
            "invalid_question",
            "invalid_input",
            "max_length_exceeded",
            "invalid_model_output",
            "deadline_exceeded",
            "unavailable",
        ]
    },
    "Meta": shape({"model_id": TEXT, "model_sha256": TEXT, "device": TEXT}, "model_id", "model_sha256", "device"),
    "SystemOneResponse": closed(
        {
            "model": TEXT,
            **_ANSWERED,
            "states": {
                "type": "object",
                "additionalProperties": closed({"model": TEXT, **_ANSWERED}, "model", "answers", "usage"),
            },
            "meta": ref("Meta"),
        },
        *("model", "answers", "usage"),
    ),
    "BatchResponse": closed(
        {
            "model": TEXT,
            "count": COUNT,
            "results": many(closed({"id": TEXT, **_ANSWERED}, "id", "answers", "usage"), 1),
            "usage": ref("Usage"),
            "meta": ref("Meta"),
        },
        *("model", "count", "results", "usage"),
    ),
    "DecisionsAnswer": {
        "oneOf": [
            typed("predicate", {"probability": SHARE, **_NAME}, "name", "probability"),
            typed(
                "choice",
                {
                    "choice": {"type": ["string", "boolean"]},
                    "confidence": SHARE,
                    "probabilities": many(
                        closed({"value": {"type": ["string", "boolean"]}, "probability": SHARE}, "value", "probability")
                    ),
                    **_NAME,
                },
                *("name", "choice", "confidence", "probabilities"),
            ),
            typed(
                "score",
                {
                    "score": {"type": "number", "minimum": 0, "maximum": 9},
                    "confidence": SHARE,
                    "probabilities": many(
                        closed({"value": COUNT, "label": TEXT, "probability": SHARE}, "value", "label", "probability")
                    ),
                    **_NAME,
                },
                *("name", "score", "confidence", "probabilities"),
            ),
            typed("refusal", _NAME, "name"),
        ]
    },
    "DecisionsResponse": closed(
        {
            "model": TEXT,
            "answers": many(ref("DecisionsAnswer"), 1),
            "usage": closed(
                {
                    "input_tokens": COUNT,
                    "input_tokens_details": closed(
                        {"cached_tokens": COUNT, "cache_write_tokens": COUNT}, "cached_tokens", "cache_write_tokens"
                    ),
                    "output_tokens": COUNT,
                    "output_tokens_details": closed({"reasoning_tokens": COUNT}, "reasoning_tokens"),
                    "total_tokens": COUNT,
                },
                *("input_tokens", "input_tokens_details", "output_tokens", "output_tokens_details", "total_tokens"),
            ),
            "meta": ref("Meta"),
        },
        *("model", "answers", "usage"),
    ),
    "Card": shape(
        {"id": TEXT, "object": {"const": "model"}, "created": {"type": "integer"}, "owned_by": TEXT},
        *("id", "object", "created", "owned_by"),
    ),
    "Models": shape(
        {
            "object": {"const": "list"},
            "api_version": TEXT,
            "data": many(ref("Card")),
            "models": many(
                closed({"name": TEXT, "description": TEXT, "release_date": TEXT}, "name", "description", "release_date")
            ),
        },
        *("object", "api_version", "data", "models"),
    ),
    "SystemOneModels": closed(
        {
            "object": {"const": "list"},
            "data": many(
                closed(
                    {"id": TEXT, "object": {"const": "model"}, "api": {"const": "systemone"}, "routing": FLAG},
                    *("id", "object", "api", "routing"),
                )
            ),
        },
        *("object", "data"),
    ),
    "Health": closed({"status": {"enum": ["ready", "loading", "live"]}}, "status"),
    "Error": shape({"code": TEXT, "type": TEXT, "message": TEXT}, "code", "type", "message"),
    "Refused": closed({"detail": TEXT, "code": TEXT, "error": ref("Error")}, "detail", "code", "error"),
    "InvalidRequest": closed(
        {
            "detail": many(
                closed({"loc": many({"type": ["string", "integer"]}), "msg": TEXT, "type": TEXT}, "loc", "msg", "type"),
                1,
            ),
            "error": ref("Error"),
        },
        *("detail", "error"),
    ),
    "Unauthorised": closed(
        {
            "detail": closed(
                {"error_type": {"const": "authentication_error"}, "message": TEXT}, "error_type", "message"
            ),
            "code": TEXT,
            "error": ref("Error"),
        },
        *("detail", "code", "error"),
    ),
}
