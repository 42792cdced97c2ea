"""Envoy's own error answers in the client's format.

Only answers that Envoy makes by itself are rewritten; they are known by their details. The router's answers pass
through the same place in Envoy and keep their bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from router.gateway.envoy import proto as pb
from router.gateway.envoy.names import LLM_PATHS, MESSAGES_PATHS

# What Envoy reports about an answer of its own -> code, OpenAI type, Anthropic type, message.
_CASES = (
    # Whether Envoy or the router sees it first is a race, so both say the same.
    ("request_payload_too_large", "body_too_large", "invalid_request_error", "request_too_large",
     "The request body is larger than this gateway accepts."),
    ("ext_proc_error", "router_unavailable", "server_error", "api_error", "The router is unavailable."),
    ("no_healthy_upstream", "backend_unavailable", "server_error", "api_error", "The selected backend is unavailable."),
    ("cluster_not_found", "backend_unavailable", "server_error", "api_error", "The selected backend is unavailable."),
    ("upstream_reset_before_response_started", "backend_unavailable", "server_error", "api_error",
     "The selected backend is unavailable."),
    ("stream_idle_timeout", "timeout", "server_error", "timeout_error", "The request timed out."),
    ("response_timeout", "timeout", "server_error", "timeout_error", "The request timed out."),
)  # fmt: skip


def local_replies() -> pb.hcm.LocalReplyConfig:
    """A mapper per case and client format; what none matches stays as Envoy writes it."""
    mappers = []
    for details, code, openai_type, anthropic_type, message in _CASES:
        anthropic = {"type": "error", "error": {"type": anthropic_type, "message": message}}
        openai = {"error": {"type": openai_type, "code": code, "message": message, "param": None}}
        mappers.append(_mapper(details, MESSAGES_PATHS, anthropic))
        mappers.append(_mapper(details, LLM_PATHS, openai))
    return pb.hcm.LocalReplyConfig(mappers=mappers)


def _mapper(details: str, path: str, body: Mapping[str, object]) -> pb.hcm.ResponseMapper:
    expression = f"response.code_details.startsWith('{details}') && request.url_path.matches('^{path}$')"
    condition = pb.accesslog.ExtensionFilter(
        name="envoy.access_loggers.extension_filters.cel",
        typed_config=pb.pack(pb.cel.ExpressionFilter(expression=expression)),
    )
    return pb.hcm.ResponseMapper(
        filter=pb.accesslog.AccessLogFilter(extension_filter=condition),
        body_format_override=pb.core.SubstitutionFormatString(json_format=pb.struct(body)),
    )
