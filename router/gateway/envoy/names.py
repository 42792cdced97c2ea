"""Names that Envoy's configuration, the router and operators share. Light: imports nothing of Envoy's types."""

from __future__ import annotations

from typing import Final

from router.config.services import MATCHED_NAMES

EXT_PROC_CLUSTER: Final = "pointsman/ext_proc"
METADATA_NAMESPACE: Final = "pointsman"
DIAGNOSTICS_NAMESPACE: Final = "vllm.semantic_router"
SELECTED_MODEL: Final = "x-selected-model"
# Names the plan that decided a request. Only the configuration of a reload (two plans at once) reads it.
PLAN_HEADER: Final = "x-vsr-plan"

# Envoy lower-cases header names. Servers that speak WSGI or CGI read "x_vsr_a" and "x-vsr-a" as one header, so twins go
# too. They are removed here rather than by `headers_with_underscores_action`, because ordinary clients do send
# underscores (coding agents send `session_id`) and would be refused, or silently lose their header.
ROUTER_HEADERS: Final = r"x[-_]vsr[-_].*|x[-_]selected[-_]model"
_IDENTITY: Final = r"|x[-_]authz[-_]user[-_](?:id|groups)"
_DEBUG: Final = r"|pointsman[-_]debug"
_LISTENER: Final = r"|pointsman[-_]listener"
OWNED_HEADERS: Final = ROUTER_HEADERS + _IDENTITY + _DEBUG + _LISTENER

# Who asks, as a listener's trusted peers say. An underscore twin would be another header to the router: it reads none.
IDENTITY_HEADERS: Final = ("x-authz-user-id", "x-authz-user-groups")


def forged(*, trusted: bool, debug: bool, told: bool = False) -> str:
    """What to remove of a client's headers: all that only the router may say, and who asks unless the peer is trusted.

    With `debug`, its wish to be told has just been copied, and stays; with `told`, so does the listener's word.
    """
    kept = (trusted, _IDENTITY), (debug, _DEBUG), (told, _LISTENER)
    return ROUTER_HEADERS + "".join(pattern for keep, pattern in kept if not keep)


# Where a client may have put its own key, per provider dialect.
CREDENTIAL_HEADERS: Final = ("authorization", "x-api-key", "api-key")

# Response header -> key in the dynamic metadata. A key that the router did not set leaves no header.
ANSWER_HEADERS: Final = {
    "x-vsr-selected-recipe": "recipe",
    "x-vsr-selected-decision": "decision",
    "x-vsr-selected-model": "model",
    "x-vsr-selected-algorithm": "algorithm",
    "x-vsr-selected-confidence": "confidence",
    "x-vsr-matched-decision-model": "matched_decision_model",
    "x-vsr-applied-unknown-policy": "applied_unknown_policy",
    "x-vsr-retention-drop": "retention_drop",
    "x-vsr-retention-keep-current-model": "retention_keep_current_model",
    "x-vsr-retention-prefer-prefix": "retention_prefer_prefix",
    "x-vsr-replay-id": "replay_id",
    "x-vsr-warnings": "warnings",
}
# The same for callers who asked, on listeners that let them.
DEBUG_ANSWER_HEADERS: Final = {
    "x-vsr-trace": "trace",
    **{
        f"x-vsr-matched-{name}": f"matched_{name.replace('-', '_')}"
        for name in (*MATCHED_NAMES.values(), "projections")
    },
}
FIXED_ANSWER_HEADERS: Final = {"x-vsr-schema-version": "2", "x-vsr-response-path": "upstream"}

# What only the router can settle: requests under an LLM prefix that carry a body, and the list of models. Case and path
# parameters (";x") are folded because some backends fold them. A path that is still escaped where the prefix would
# stand, or escaped twice, may be an LLM path to a backend that decodes more than Envoy does: it counts as one.
LLM_PATHS: Final = r"(?i)/(?:(?:v1|openai)(?:[/;].*)?|[^/]*%.*|.*%25.*)"
MESSAGES_PATHS: Final = r"(?i)/v1/messages(?:[/;].*)?"
MODEL_LIST_PATHS: Final = r"(?i)/(?:openai/)?v1/models/?"
BODILESS_METHODS: Final = r"GET|HEAD|OPTIONS|DELETE|TRACE"
