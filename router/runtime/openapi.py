"""`GET /openapi.json`: the endpoints as OpenAPI 3.1. Bodies are in `openapi_requests` and `openapi_responses`."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from .openapi_requests import REQUESTS
from .openapi_responses import RESPONSES
from .openapi_shapes import Schema, ref

_REQUEST_ID: Schema = {
    "x-typesafe-request-id": {"description": "The id of this exchange.", "schema": {"type": "string"}},
}
_AGAIN: Schema = {
    "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "string", "pattern": "^[0-9]+$"}}
}
_TIMING: Schema = {
    "Server-Timing": {"description": "Milliseconds queued, in the model, and in all.", "schema": {"type": "string"}}
}

_INVALID: Schema = {"anyOf": [ref("InvalidRequest"), ref("Refused")]}
_POST_ERRORS: dict[int, tuple[str, Schema]] = {
    400: ("Not JSON, not a form, an asset that nothing refers to, or media that the model does not read.", _INVALID),
    404: ("Another model is asked for.", ref("Refused")),
    408: ("The body did not arrive in time.", ref("Refused")),
    413: ("The body is too large, before or after decoding.", ref("Refused")),
    415: ("A content encoding other than gzip and zstd.", ref("Refused")),
    422: ("JSON that is not a valid request, or questions that this model cannot answer.", ref("InvalidRequest")),
    429: ("Too many requests are waiting.", ref("Refused")),
    500: ("A fault of the runtime.", ref("Refused")),
    503: ("The model is not ready, or failed on this request.", ref("Refused")),
    504: ("The deadline passed, and the dialect cannot say so for one question.", ref("Refused")),
}


def document(*, keyed: bool = False) -> dict[str, Any]:
    """The whole description; `keyed` says that the endpoints ask for an API key."""
    content: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Pointsman model runtime",
            "version": _version(),
            "description": "Typed questions about texts, answered with probabilities by one decision model.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": _paths(keyed),
        "components": {"schemas": REQUESTS | RESPONSES},
    }
    if keyed:
        content["components"]["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer"},
            "header": {"type": "apiKey", "in": "header", "name": "Api-Key"},
        }
        content["security"] = [{"bearer": []}, {"header": []}]
    return content


def _paths(keyed: bool) -> dict[str, Any]:
    either = {"oneOf": [ref("SystemOneRequest"), ref("DecisionsRequest")]}
    answered = {"anyOf": [ref("SystemOneResponse"), ref("DecisionsResponse")]}
    model = {"name": "model", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
    refused = {404: ("This runtime does not serve that model.", ref("Refused"))}
    health = {503: ("The model is loading.", ref("Health"))}
    return {
        "/v1/systemone": _post(
            "systemone", "Ask about states", ref("SystemOneRequest"), ref("SystemOneResponse"), keyed
        ),
        "/v1/systemone/batches": _post(
            "batches", "Ask the same about many states", ref("BatchRequest"), ref("BatchResponse"), keyed
        ),
        "/v1/decisions": _post("decisions", "Ask in either dialect", either, answered, keyed),
        "/v1/models": _get("models", "The model that is served", ref("Models"), keyed),
        "/v1/models/{model}": {
            "parameters": [model],
            **_get("model", "The model by one of its names", ref("Card"), keyed, refused),
        },
        "/v1/systemone/models": _get("systemoneModels", "Names only", ref("SystemOneModels"), keyed),
        "/health": _get("health", "Whether the model answers", ref("Health"), None, health),
        "/health/live": _get("live", "Whether the process serves", ref("Health"), None),
        "/metrics": {"get": _operation("metrics", "Counters as Prometheus text", {200: _text()}, keyed)},
        "/openapi.json": _get("openapi", "This document", {"type": "object"}, None),
    }


def _post(name: str, summary: str, body: Schema, answer: Schema, keyed: bool) -> Schema:
    responses = {200: _json("Answered.", answer, _TIMING)}
    for status, (description, schema) in _POST_ERRORS.items():
        responses[status] = _json(description, schema, _AGAIN if status in (429, 503) else {})
    form = {"type": "object", "properties": {"request": body}, "required": ["request"]}
    content = {
        "application/json": {"schema": body},
        "multipart/form-data": {"schema": form, "encoding": {"request": {"contentType": "application/json"}}},
    }
    operation = _operation(name, summary, responses, keyed)
    return {"post": operation | {"requestBody": {"required": True, "content": content}}}


def _get(
    name: str, summary: str, answer: Schema, keyed: bool | None, errors: dict[int, tuple[str, Schema]] | None = None
) -> Schema:
    """`keyed` None: answered without a key whatever the others ask for."""
    responses = {200: _json("Answered.", answer)}
    responses |= {status: _json(*error) for status, error in (errors or {}).items()}
    return {"get": _operation(name, summary, responses, keyed)}


def _operation(name: str, summary: str, responses: dict[int, Schema], keyed: bool | None) -> Schema:
    if keyed:
        responses |= {
            401: _json("The API key is not valid.", ref("Unauthorised")),
            403: _json("An API key is needed.", ref("Unauthorised")),
        }
    shown = {str(status): responses[status] for status in sorted(responses)}
    return {"operationId": name, "summary": summary, "responses": shown} | ({"security": []} if keyed is None else {})


def _json(description: str, schema: Schema, headers: Schema | None = None) -> Schema:
    content = {"application/json": {"schema": schema}}
    return {"description": description, "headers": _REQUEST_ID | (headers or {}), "content": content}


def _text() -> Schema:
    return {
        "description": "Counted.",
        "headers": _REQUEST_ID,
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }


def _version() -> str:
    try:
        return version("pointsman")
    except PackageNotFoundError:
        return "0"
