"""Listeners: what is done to a client's request before the router sees it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

from router.config.offers import LISTENER_HEADER
from router.config.plan import Listener
from router.config.services import DEBUG_HEADER
from router.gateway.envoy import proto as pb
from router.gateway.envoy.limits import Limits
from router.gateway.envoy.local_replies import local_replies
from router.gateway.envoy.names import IDENTITY_HEADERS, METADATA_NAMESPACE, forged
from router.gateway.envoy.processor import ext_proc_filter

_LOG_FIELDS = {
    "time": "%START_TIME%",
    "method": "%REQ(:METHOD)%",
    "path": "%PATH(NQ)%",
    "status": "%RESPONSE_CODE%",
    "details": "%RESPONSE_CODE_DETAILS%",
    "flags": "%RESPONSE_FLAGS%",
    "bytes_in": "%BYTES_RECEIVED%",
    "bytes_out": "%BYTES_SENT%",
    "duration_ms": "%DURATION%",
    "request_id": "%REQ(X-REQUEST-ID)%",
    "cluster": "%UPSTREAM_CLUSTER%",
    "decision": f"%DYNAMIC_METADATA({METADATA_NAMESPACE}:decision)%",
}


def resource_name(listener: Listener) -> str:
    """By address, not by the configured name: a renamed listener is then changed in place and keeps its socket.

    Without colons, which Envoy's statistics cannot spell.
    """
    return f"listener/{listener.address}_{listener.port}".replace(":", "_")


def listener_resource(
    listener: Listener,
    limits: Limits,
    routes: pb.route.RouteConfiguration | pb.hcm.Rds,
    *,
    streamed: bool,
    access_log: bool,
    read: Sequence[str] = (),
    answers: bool = False,
) -> pb.listener.Listener:
    """One listener with its connection manager. `routes` is the table itself or where it is found.

    `read` names headers of clients that the router reads, and Envoy's own that says by which listener a request came;
    with `answers` it reads those of answers, too. Trusted peers come in by a filter chain of their own, the only one
    that lets identity headers through.
    """

    told = LISTENER_HEADER in read

    def chain(read: Iterable[str], *, trusted: bool) -> pb.listener.FilterChain:
        manager = _manager(listener, limits, access_log=access_log, trusted=trusted, told=told)
        return _chain(manager, routes, ext_proc_filter(limits, streamed=streamed, read=read, answers=answers))

    if listener.debug:
        read = (*read, DEBUG_HEADER)
    chains = [chain(read, trusted=False)]
    if listener.trusted_peers:
        trusted = chain((*read, *IDENTITY_HEADERS), trusted=True)
        trusted.name = "trusted_peers"
        networks = [ipaddress.ip_network(peer) for peer in listener.trusted_peers]
        trusted.filter_chain_match = pb.listener.FilterChainMatch(
            direct_source_prefix_ranges=[
                pb.core.CidrRange(address_prefix=str(network.network_address), prefix_len=network.prefixlen)
                for network in networks
            ]
        )
        chains.insert(0, trusted)
    return pb.listener.Listener(
        name=resource_name(listener),
        address=pb.socket(listener.address, listener.port),
        per_connection_buffer_limit_bytes=limits.buffer_bytes,
        filter_chains=chains,
    )


def _chain(
    manager: pb.hcm.HttpConnectionManager,
    routes: pb.route.RouteConfiguration | pb.hcm.Rds,
    router: pb.hcm.HttpFilter,
) -> pb.listener.FilterChain:
    manager.http_filters = [
        router,
        pb.hcm.HttpFilter(
            name="envoy.filters.http.router",
            typed_config=pb.pack(pb.router_filter.Router(suppress_envoy_headers=True)),
        ),
    ]
    if isinstance(routes, pb.hcm.Rds):
        manager.rds = routes
    else:
        manager.route_config = routes
    return pb.listener.FilterChain(
        filters=[
            pb.listener.Filter(name="envoy.filters.network.http_connection_manager", typed_config=pb.pack(manager))
        ]
    )


def _manager(
    listener: Listener, limits: Limits, *, access_log: bool, trusted: bool, told: bool
) -> pb.hcm.HttpConnectionManager:
    slashes = pb.hcm.HttpConnectionManagerPathWithEscapedSlashesAction
    return pb.hcm.HttpConnectionManager(
        stat_prefix=listener.name,
        # What is matched, what the router reads and what the backend gets is one and the same path. Escaped slashes are
        # unescaped rather than refused: names of models in a path legitimately hold them.
        normalize_path=True,
        merge_slashes=True,
        path_with_escaped_slashes_action=slashes.UNESCAPE_AND_FORWARD,
        early_header_mutation_extensions=[
            _strip(
                forged(trusted=trusted, debug=listener.debug, told=told),
                debug=listener.debug,
                name=listener.socket if told else None,
            )
        ],
        use_remote_address=True,
        # Nobody is "internal": else a client in a private network could set timeouts and retries by x-envoy headers.
        # Envoy takes an empty list for its default, the private networks, so an address stands here that no client has.
        internal_address_config=pb.hcm.HttpConnectionManagerInternalAddressConfig(cidr_ranges=[_nobody()]),
        preserve_external_request_id=True,
        server_header_transformation=pb.hcm.HttpConnectionManagerServerHeaderTransformation.PASS_THROUGH,
        http_protocol_options=pb.core.Http1ProtocolOptions(enable_trailers=True),
        common_http_protocol_options=pb.core.HttpProtocolOptions(
            idle_timeout=pb.seconds(limits.idle_timeout_s(listener)),
            headers_with_underscores_action=pb.core.HttpProtocolOptionsHeadersWithUnderscoresAction.ALLOW,
        ),
        stream_idle_timeout=pb.seconds(limits.idle_timeout_s(listener)),
        request_headers_timeout=pb.seconds(30),
        local_reply_config=local_replies(),
        access_log=[_log()] if access_log else [],
    )


def _nobody() -> pb.core.CidrRange:
    return pb.core.CidrRange(address_prefix="0.0.0.0", prefix_len=32)  # noqa: S104 - a source that cannot be


def _strip(pattern: str, *, debug: bool, name: str | None) -> pb.core.TypedExtensionConfig:
    """Remove what only the router may say, before routes are chosen and before the router is asked.

    With `debug`, a client's wish to be told how it was decided is copied to a name that only this writes. `name` tells
    the router by which listener the request came.
    """
    mutations = [pb.remove_matching(pattern)]
    if debug:
        wish = pb.append_header(DEBUG_HEADER, "%REQ(x-vsr-debug)%")
        mutations = [pb.remove_matching("pointsman[-_]debug"), pb.mutation.HeaderMutation(append=wish), *mutations]
    if name is not None:
        said = pb.append_header(LISTENER_HEADER, name)
        mutations = [pb.remove_matching("pointsman[-_]listener"), pb.mutation.HeaderMutation(append=said), *mutations]
    return pb.core.TypedExtensionConfig(
        name="envoy.http.early_header_mutation.header_mutation",
        typed_config=pb.pack(pb.early_mutation.HeaderMutation(mutations=mutations)),
    )


def _log() -> pb.accesslog.AccessLog:
    """One JSON line a request: no query, no header that a client fills, no body."""
    lines = pb.core.SubstitutionFormatString(json_format=pb.struct(_LOG_FIELDS))
    return pb.accesslog.AccessLog(
        name="envoy.access_loggers.stdout", typed_config=pb.pack(pb.stream_log.StdoutAccessLog(log_format=lines))
    )
