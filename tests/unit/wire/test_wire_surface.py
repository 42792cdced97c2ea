from __future__ import annotations

import pytest

from router.config.plan import ApiFormat
from router.wire.http import Head
from router.wire.surface import Format, Kind, Surface, classify, normalise_path

CANONICAL = {
    "/v1/chat/completions": Format.CHAT,
    "/v1/responses": Format.RESPONSES,
    "/v1/messages": Format.MESSAGES,
}


def at(path: str, method: str = "POST", **headers: str) -> Surface:
    return classify(Head(method, path, {name.replace("_", "-"): value for name, value in headers.items()}))


@pytest.mark.parametrize(("path", "format"), CANONICAL.items())
def test_the_three_apis_are_read_and_their_path_is_left_alone(path: str, format: Format) -> None:
    assert at(path) == Surface(Kind.LLM, format, path, rewritten=False)
    assert at(path + "?beta=true") == Surface(Kind.LLM, format, path + "?beta=true", rewritten=False)


SPELLINGS = [
    "/v1//chat/completions",
    "//v1/chat/completions",
    "/v1/chat/completions/",
    "/v1/./chat/completions",
    "/v1/x/../chat/completions",
    "/../v1/chat/completions",
    "/x/../v1/chat/completions",
    "/V1/Chat/COMPLETIONS",
    "/v1/chat%2Fcompletions",
    "/v1/chat%2fcompletions",
    "/%76%31/chat/completions",
    "/v1/%63hat/completions",
    "/v1/%2563hat/completions",
    "/v1/%25252563hat/completions",
    "/v1/x/%2e%2e/chat/completions",
    "/v1/x/%252e%252e/chat/completions",
    "\\v1\\chat\\completions",
    "/v1%5Cchat%5Ccompletions",
    "/v1;a=b/chat;c/completions;d",
    "/v1/x/..;/chat/completions",
    "/v1/chat/completions#part",
    "/v1/chat/completions%3Fx=1",
    "/v1/chat/completions%23x",
    "/v1/chat/completions%00",
    "/v1/chat/completions%20",
    "/v1/ch\tat/completions",
    "http://api.example.com/v1/chat/completions",
    "HTTPS://user@host:443/v1/chat/completions",
    "v1/chat/completions",
]


@pytest.mark.parametrize("path", SPELLINGS)
def test_no_spelling_of_a_path_gets_round_the_router(path: str) -> None:
    assert normalise_path(path) == "/v1/chat/completions"
    assert at(path) == Surface(Kind.LLM, Format.CHAT, "/v1/chat/completions", rewritten=True)


def test_a_rewritten_path_keeps_its_query() -> None:
    assert at("/v1//messages?beta=true&x=%2F#end").path == "/v1/messages?beta=true&x=%2F"


@pytest.mark.parametrize("path", ["/", "", "*", "/%", "/%zz", "/..", "/../..", "http://host", "/%ff%fe"])
def test_odd_paths_are_harmless(path: str) -> None:
    assert normalise_path(path).startswith("/")
    assert at(path).kind is Kind.OTHER


def test_deep_escapes_end() -> None:
    assert normalise_path("/%" + "25" * 20_000 + "41").startswith("/%25")


@pytest.mark.parametrize(
    "path",
    [
        "/v1",
        "/v1/",
        "/v1/embeddings",
        "/v1/completions",
        "/v1/messages/count_tokens",
        "/v1/messages/batches",
        "/v1/chat/completions/x",
        "/v1/models",
        "/V1/Embeddings",
        "/openai/v1/chat/completions",
        "/openai/deployments/gpt/chat/completions?api-version=1",
        "/v1/chat/completions/../../../elsewhere",
        "/v1/chat/completions;/../../../elsewhere",
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "post", "QUERY"])
def test_what_may_carry_a_prompt_that_is_not_read_is_unknown(path: str, method: str) -> None:
    assert at(path, method).kind is Kind.UNKNOWN


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_a_known_path_takes_only_post(method: str) -> None:
    assert at("/v1/chat/completions", method).kind is Kind.UNKNOWN


@pytest.mark.parametrize(
    ("path", "headers", "format"),
    [
        ("/v1/messages/count_tokens", {}, Format.MESSAGES),
        ("/v1/complete", {"anthropic_version": "2023-06-01"}, Format.MESSAGES),
        ("/v1/responses/resp_1/cancel", {}, Format.RESPONSES),
        ("/openai/v1/responses", {}, Format.RESPONSES),
        ("/v1/embeddings", {}, Format.CHAT),
        ("/v1/messagesx", {}, Format.CHAT),
    ],
)
def test_an_unknown_path_guesses_the_clients_format(path: str, headers: dict[str, str], format: Format) -> None:
    assert at(path, **headers).format is format


@pytest.mark.parametrize("path", ["/healthz", "/v10/chat", "/v1x", "/upload", "/api/v1/thing", "/xopenai/y"])
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
def test_other_traffic_passes_untouched(path: str, method: str) -> None:
    assert at(path, method) == Surface(Kind.OTHER, None, path)


@pytest.mark.parametrize(
    "path",
    [
        *("/api/v4/chat/completions", "/api/v4", "/API//v4/x", "/%61pi/v4/x", "/api;a/v4/x", "/x/../api/v4/x"),
        *("/api/v4/../../x", "/api%2fv4%2fx", "\\\\api\\v4\\x"),
    ],
)
def test_where_backends_serve_their_api_is_guarded_too(path: str) -> None:
    assert classify(Head("POST", path), ("/api/v4",)).kind is Kind.UNKNOWN
    assert classify(Head("POST", path), ("/llm", "")).kind is Kind.UNKNOWN
    assert classify(Head("GET", path), ("/api/v4", "")).kind is Kind.OTHER
    assert classify(Head("POST", path)).kind is Kind.OTHER


def test_roots_leave_the_rest_as_it_is() -> None:
    assert classify(Head("POST", "/api/v44"), ("/api/v4",)).kind is Kind.OTHER
    assert classify(Head("POST", "//v1/messages"), ("",)).kind is Kind.LLM
    assert classify(Head("GET", "/v1/models"), ("",)).kind is Kind.LIST_MODELS


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "DELETE", "TRACE"])
def test_methods_without_a_body_pass_under_a_guarded_root(method: str) -> None:
    assert at("/v1/responses/resp_1", method).kind is Kind.OTHER


def test_a_bodiless_method_cannot_tunnel_a_prompt() -> None:
    assert at("/v1/responses", "GET", upgrade="websocket").kind is Kind.UNKNOWN
    assert at("/v1/chat/completions", "GET", x_http_method_override="POST").kind is Kind.UNKNOWN
    assert at("/v1/chat/completions", "GET", content_length="7").kind is Kind.UNKNOWN
    assert at("/v1/chat/completions", "GET", transfer_encoding="chunked").kind is Kind.UNKNOWN
    assert at("/v1/files/f", "DELETE", content_length="0").kind is Kind.OTHER
    assert at("/v1/chat/completions", "CONNECT").kind is Kind.UNKNOWN
    assert at("/v1/responses", "GET", upgrade="h2c").kind is Kind.OTHER
    assert at("/v1/responses/r", "GET", x_http_method_override="DELETE").kind is Kind.OTHER


def test_the_list_of_models_is_answered_in_the_clients_format() -> None:
    assert at("/v1/models", "GET").kind is Kind.LIST_MODELS
    assert at("/v1/models", "GET").format is Format.CHAT
    assert at("/v1/models/?limit=20", "GET", anthropic_version="2023-06-01").format is Format.MESSAGES
    assert at("/v1/models/some", "GET").kind is Kind.OTHER


def test_formats_know_their_name_in_the_configuration() -> None:
    assert [format.api for format in Format] == [ApiFormat.CHAT, ApiFormat.RESPONSES, ApiFormat.MESSAGES]
