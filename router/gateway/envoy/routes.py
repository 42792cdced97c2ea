"""The route table: fail closed by construction.

A request reaches a backend only on a route that matches what the router wrote, or as traffic that is none of the
router's business. An LLM request without a decision meets a fixed 503, even if the router ended its stream in peace
(Envoy then goes on as if nothing had been asked, whatever `failure_mode_allow` says).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from router.config.plan import Plan
from router.gateway.envoy import proto as pb
from router.gateway.envoy.clusters import Group, authority, groups, keyless
from router.gateway.envoy.names import (
    ANSWER_HEADERS,
    BODILESS_METHODS,
    DEBUG_ANSWER_HEADERS,
    FIXED_ANSWER_HEADERS,
    LLM_PATHS,
    MESSAGES_PATHS,
    METADATA_NAMESPACE,
    MODEL_LIST_PATHS,
    PLAN_HEADER,
    SELECTED_MODEL,
)
from router.gateway.envoy.processor import EXT_PROC_FILTER, headers_only

_MILLION = 1_000_000
_NO_DECISION = "The router made no decision on this request."


@dataclass(frozen=True, slots=True)
class Served:
    """A group of replicas with the requests it takes: those of `plan_revision` only, or of any plan when None."""

    group: Group
    plan_revision: str | None
    up_to: int | None


def served(plan: Plan, previous: Plan | None, *, pinned: bool) -> list[Served]:
    """Every group that gets a route, in matching order.

    During a reload a model may differ between the plans. Requests that the old plan decided carry its revision and stay
    on its replicas; without that mark they follow the new plan.
    """
    new = {name: groups(model, pinned=pinned) for name, model in plan.models.items()}
    old = {name: groups(model, pinned=pinned) for name, model in previous.models.items()} if previous else {}
    kept: list[Served] = []
    for name, parts in old.items():
        if [part.name for part in parts] != [part.name for part in new.get(name, ())]:
            kept += _split(parts, previous.revision if previous and name in new else None)
    return kept + [one for parts in new.values() for one in _split(parts, None)]


def _split(parts: Sequence[Group], revision: str | None) -> list[Served]:
    """Cumulative bounds in millionths: routes are tried in order against one random number a request."""
    total = sum(part.share for part in parts) or 1
    found, seen = [], 0
    for index, part in enumerate(parts):
        seen += part.share
        last = index == len(parts) - 1
        found.append(Served(part, revision, None if last else seen * _MILLION // total))
    return found


def pass_through(plan: Plan, *, pinned: bool) -> tuple[Group, ...]:
    """Replicas of the default model for traffic that the router does not decide on, without the operator's key.

    With the key anybody could list files or read stored answers of the operator's account.
    """
    model = plan.models.get(plan.default_model) if plan.default_model is not None else None
    return tuple(keyless(group) for group in groups(model, pinned=pinned)) if model else ()


def table(
    name: str,
    models: Iterable[Served],
    others: Sequence[Group],
    idle_timeout_s: float,
    *,
    streamed: bool,
    api_roots: Iterable[str] = (),
) -> pb.route.RouteConfiguration:
    """The routes of one listener. `others` takes what is neither an LLM request nor decided; empty means 404.

    `api_roots` are where those backends serve model APIs beside `/v1`.

    `streamed` says that bodies reach the router in full duplex, where a route cannot retry: Envoy keeps the body for a
    retry where it also keeps what trailers have yet to release, and a request with trailers would send its body twice.
    """
    routes = [_model_route(one, idle_timeout_s, retried=not streamed) for one in models]
    routes += _closed_routes(api_roots)
    if not others:
        routes.append(
            _answer("not_found", pb.route.RouteMatch(prefix="/"), 404, _error_body("not_found", "Not found."))
        )
    else:
        for index, one in enumerate(_split(others, None)):
            match = pb.route.RouteMatch(prefix="/", runtime_fraction=_fraction(one.up_to))
            routes.append(
                pb.route.Route(
                    name=f"other/{index}",
                    match=match,
                    route=_action(one.group, idle_timeout_s, retried=True),
                    typed_per_filter_config={EXT_PROC_FILTER: headers_only()},
                )
            )
    return pb.route.RouteConfiguration(
        name=name,
        virtual_hosts=[pb.route.VirtualHost(name="pointsman", domains=["*"], routes=routes)],
        # Clusters and routes come from separate files; a route may be read first.
        validate_clusters=False,
    )


def _model_route(one: Served, idle_timeout_s: float, *, retried: bool) -> pb.route.Route:
    headers = [_header(SELECTED_MODEL, one.group.model.name)]
    if one.plan_revision is not None:
        headers.append(_header(PLAN_HEADER, one.plan_revision))
    return pb.route.Route(
        name=one.group.name,
        match=pb.route.RouteMatch(prefix="/", headers=headers, runtime_fraction=_fraction(one.up_to)),
        route=_action(one.group, idle_timeout_s, retried=retried),
        request_headers_to_remove=[SELECTED_MODEL],
        response_headers_to_add=_answer_headers(),
    )


def _header(name: str, value: str) -> pb.route.HeaderMatcher:
    return pb.route.HeaderMatcher(name=name, string_match=pb.exact(value))


def _fraction(up_to: int | None) -> pb.core.RuntimeFractionalPercent | None:
    if up_to is None:
        return None
    share = pb.types.FractionalPercent(numerator=up_to, denominator=pb.types.FractionalPercentDenominatorType.MILLION)
    return pb.core.RuntimeFractionalPercent(default_value=share)


def debug_headers() -> list[pb.core.HeaderValueOption]:
    """What is told to callers who asked, beside what every caller is told."""
    return [
        pb.append_header(name, f"%DYNAMIC_METADATA({METADATA_NAMESPACE}:{key})%")
        for name, key in DEBUG_ANSWER_HEADERS.items()
    ]


def _answer_headers() -> list[pb.core.HeaderValueOption]:
    told = {name: f"%DYNAMIC_METADATA({METADATA_NAMESPACE}:{key})%" for name, key in ANSWER_HEADERS.items()}
    return [pb.append_header(name, value) for name, value in (told | FIXED_ANSWER_HEADERS).items()]


def _action(group: Group, idle_timeout_s: float, *, retried: bool) -> pb.route.RouteAction:
    action = pb.route.RouteAction(
        cluster=group.name,
        # A completion may think and stream for as long as it moves: only silence ends it.
        timeout=pb.seconds(0),
        idle_timeout=pb.seconds(idle_timeout_s),
        retry_policy=_retries() if retried else None,
    )
    if group.one_host:
        action.host_rewrite_literal = authority(group.first)
    else:
        action.auto_host_rewrite = True
    if group.first.path != "/v1":
        action.regex_rewrite = pb.matcher.RegexMatchAndSubstitute(
            pattern=pb.matcher.RegexMatcher(regex=r"^/v1(/.*)$"),
            substitution=group.first.path.replace("\\", r"\\") + r"\1",
        )
    return action


def _retries() -> pb.route.RetryPolicy:
    """Try again only what no backend can have started on."""
    return pb.route.RetryPolicy(
        retry_on="connect-failure,refused-stream,reset-before-request",
        num_retries=2,
        retry_host_predicate=[
            pb.route.RetryPolicyRetryHostPredicate(
                name="envoy.retry_host_predicates.previous_hosts",
                typed_config=pb.pack(pb.previous_hosts.PreviousHostsPredicate()),
            )
        ],
        host_selection_retry_max_attempts=3,
    )


def _closed_routes(api_roots: Iterable[str]) -> list[pb.route.Route]:
    post = pb.route.HeaderMatcher(name=":method", string_match=pb.regex(BODILESS_METHODS), invert_match=True)
    get = pb.route.HeaderMatcher(name=":method", string_match=pb.exact("GET"))
    decided = pb.route.HeaderMatcher(name=SELECTED_MODEL, present_match=True)
    openai = _error_body("no_decision", _NO_DECISION)
    anthropic = {"type": "error", "error": {"type": "api_error", "message": _NO_DECISION}}
    return [
        _answer("unknown_model", pb.route.RouteMatch(prefix="/", headers=[decided]), 503, openai),
        _answer("undecided/messages", _match(MESSAGES_PATHS, post), 503, anthropic),
        _answer("undecided/post", _match(LLM_PATHS, post), 503, openai),
        _answer("undecided/models", _match(MODEL_LIST_PATHS, get), 503, openai),
        *(
            _answer(f"undecided/api{root}", _match(f"(?i){re.escape(root)}(?:[/;].*)?", post), 503, openai)
            for root in sorted(api_roots)
        ),
    ]


def _match(path: str, method: pb.route.HeaderMatcher) -> pb.route.RouteMatch:
    return pb.route.RouteMatch(safe_regex=pb.matcher.RegexMatcher(regex=path), headers=[method])


def _error_body(code: str, message: str) -> dict[str, object]:
    kind = "invalid_request_error" if code == "not_found" else "server_error"
    return {"error": {"type": kind, "code": code, "message": message, "param": None}}


def _answer(name: str, match: pb.route.RouteMatch, status: int, body: object) -> pb.route.Route:
    return pb.route.Route(
        name=name,
        match=match,
        direct_response=pb.route.DirectResponseAction(
            status=status, body=pb.core.DataSource(inline_string=json.dumps(body))
        ),
        response_headers_to_add=[pb.append_header("content-type", "application/json")],
    )
