"""The external processing filter: how Envoy asks the router."""

from __future__ import annotations

from collections.abc import Iterable

from router.gateway.envoy import proto as pb
from router.gateway.envoy.limits import Limits
from router.gateway.envoy.names import DIAGNOSTICS_NAMESPACE, EXT_PROC_CLUSTER, METADATA_NAMESPACE

EXT_PROC_FILTER = "envoy.filters.http.ext_proc"

# All that the router reads of a request's head, beside what a configuration's rules and actions read. Nobody's key and
# no cookie ever leaves Envoy for it, and what is not sent costs nothing to encode, carry and read.
_READ_HEADERS = (
    ":method",
    ":path",
    ":authority",
    "content-length",
    "content-encoding",
    "upgrade",
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
    "anthropic-version",
)
# All that is read of an answer, where anything is; `content-encoding` is among the above.
_ANSWER_HEADERS = (":status", "content-type")
# What a client may not send is removed before the filter; should that ever fail, the router sees it and removes it.
_OWNED_STARTS = ("x-vsr", "x_vsr", "x-selected", "x_selected")


def ext_proc_filter(
    limits: Limits, *, streamed: bool, read: Iterable[str] = (), answers: bool = False
) -> pb.hcm.HttpFilter:
    """Ask the router about each request; refuse the request when it cannot be asked. `read`: more headers to send.

    With `answers`, the headers of answers are shown to it; whether a body is, it says itself for each.
    """
    if answers:
        read = (*read, *_ANSWER_HEADERS)
    config = pb.ext_proc.ExternalProcessor(
        grpc_service=_service(),
        failure_mode_allow=False,
        status_on_error=pb.types.HttpStatus(code=pb.types.StatusCode.ServiceUnavailable),
        processing_mode=_phases(streamed=streamed, answers=answers),
        # The router drops phases that a request does not need, in its answer to the headers.
        allow_mode_override=True,
        message_timeout=pb.seconds(limits.message_timeout_s),
        metadata_options=pb.ext_proc.MetadataOptions(
            receiving_namespaces=pb.ext_proc.MetadataOptionsMetadataNamespaces(
                untyped=[METADATA_NAMESPACE, DIAGNOSTICS_NAMESPACE]
            )
        ),
        mutation_rules=_rules(),
        forward_rules=_forwarded(read),
    )
    return pb.hcm.HttpFilter(name=EXT_PROC_FILTER, typed_config=pb.pack(config))


def headers_only() -> pb.AnyMessage:
    """For routes of traffic that the router only counts: its bodies have no bound and must not wait in a buffer.

    A router that wants such a body after all says so in its answer to the headers.
    """
    head, body = pb.ext_proc.ProcessingModeHeaderSendMode, pb.ext_proc.ProcessingModeBodySendMode
    phases = pb.ext_proc.ProcessingMode(
        request_header_mode=head.SEND,
        request_body_mode=body.NONE,
        request_trailer_mode=head.SKIP,
        response_header_mode=head.SKIP,
        response_body_mode=body.NONE,
        response_trailer_mode=head.SKIP,
    )
    return pb.pack(pb.ext_proc.ExtProcPerRoute(overrides=pb.ext_proc.ExtProcOverrides(processing_mode=phases)))


def _phases(*, streamed: bool, answers: bool) -> pb.ext_proc.ProcessingMode:
    head, body = pb.ext_proc.ProcessingModeHeaderSendMode, pb.ext_proc.ProcessingModeBodySendMode
    return pb.ext_proc.ProcessingMode(
        request_header_mode=head.SEND,
        request_body_mode=body.FULL_DUPLEX_STREAMED if streamed else body.BUFFERED,
        # Trailers end a body, or take its place. Unsent, such a request would never end.
        request_trailer_mode=head.SEND,
        response_header_mode=head.SEND if answers else head.SKIP,
        response_body_mode=body.NONE,
        response_trailer_mode=head.SKIP,
    )


def _service() -> pb.core.GrpcService:
    """Another router process takes over when one cannot be reached or says that it is going."""
    return pb.core.GrpcService(
        envoy_grpc=pb.core.GrpcServiceEnvoyGrpc(cluster_name=EXT_PROC_CLUSTER),
        retry_policy=pb.core.RetryPolicy(
            retry_on="connect-failure,unavailable,refused-stream",
            num_retries=2,
            retry_back_off=pb.core.BackoffStrategy(base_interval=pb.seconds(0.025), max_interval=pb.seconds(0.25)),
        ),
    )


def _forwarded(read: Iterable[str]) -> pb.ext_proc.HeaderForwardingRules:
    patterns = [pb.exact(name) for name in dict.fromkeys((*_READ_HEADERS, *read))]
    patterns += [pb.matcher.StringMatcher(prefix=start) for start in _OWNED_STARTS]
    return pb.ext_proc.HeaderForwardingRules(allowed_headers=pb.matcher.ListStringMatcher(patterns=patterns))


def _rules() -> pb.mutation.HeaderMutationRules:
    """The router may write neither where a request goes by host, nor anybody's key. Trying is an error.

    It may write the path: a model API under another spelling is forwarded under its own name.
    """
    forbidden = r"host|authorization|proxy-authorization|x-api-key|api-key|cookie|te|connection|upgrade|x-forwarded-.*"
    return pb.mutation.HeaderMutationRules(
        disallow_system=True,
        allow_expression=pb.matcher.RegexMatcher(regex=":path"),
        disallow_expression=pb.matcher.RegexMatcher(regex=forbidden),
        disallow_is_error=True,
    )
