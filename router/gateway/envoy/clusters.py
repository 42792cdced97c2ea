"""A provider model's replicas as Envoy clusters, and the cluster of the router itself."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from router.config.plan import Auth, Backend, ProviderModel
from router.gateway.envoy import credentials
from router.gateway.envoy import proto as pb
from router.gateway.envoy.keys import secret_name
from router.gateway.envoy.names import EXT_PROC_CLUSTER, OWNED_HEADERS, ROUTER_HEADERS
from router.gateway.envoy.sources import Sources
from router.gateway.envoy.targets import Target, is_ip

_DEFAULT_PORTS = {"http": 80, "https": 443}
_UNLIMITED = 1 << 20
_HTTP_OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_CA_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


@dataclass(frozen=True, slots=True)
class Group:
    """Replicas of one model that one cluster can hold: same scheme, same path prefix, same key.

    `name` is the cluster's name and `share` the group's part of the model's whole weight.
    """

    name: str
    stat_name: str
    model: ProviderModel
    backends: tuple[Backend, ...]
    share: int

    @property
    def first(self) -> Backend:
        """A replica that stands for what all of them have in common."""
        return self.backends[0]

    @property
    def one_host(self) -> bool:
        """Whether every replica answers to the same host name."""
        return len({authority(backend) for backend in self.backends}) == 1


def authority(backend: Backend) -> str:
    """The `host` header a replica expects: the port is left out when it is the scheme's own."""
    host = f"[{backend.host}]" if ":" in backend.host else backend.host
    return host if backend.port == _DEFAULT_PORTS[backend.scheme] else f"{host}:{backend.port}"


def find_ca_bundle() -> Path:
    """The machine's trusted roots: `SSL_CERT_FILE`, else where the distributions keep them.

    Raises:
        FileNotFoundError: None of the places has one.
    """
    for candidate in (os.environ.get("SSL_CERT_FILE"), *_CA_BUNDLES):
        if candidate and os.path.isfile(candidate):
            return Path(candidate)
    raise FileNotFoundError(
        "no bundle of trusted certificates for https backends: install ca-certificates or set SSL_CERT_FILE"
    )


def groups(model: ProviderModel, *, pinned: bool) -> tuple[Group, ...]:
    """Split a model's replicas by scheme, path prefix and key.

    `pinned` adds a hash of the content to the name, so that the clusters of two plans can live side by side and none is
    ever changed under a request.
    """
    parts: dict[tuple[str, str, Auth | None], list[Backend]] = {}
    for backend in model.backends:
        parts.setdefault((backend.scheme, backend.path, backend.auth), []).append(backend)
    found = []
    for index, backends in enumerate(parts.values()):
        stat_name = f"model/{model.name}" if len(parts) == 1 else f"model/{model.name}/{index}"
        name = f"{stat_name}@{_digest(model, backends)}" if pinned else stat_name
        found.append(Group(name, stat_name, model, tuple(backends), sum(backend.weight for backend in backends)))
    return tuple(found)


def keyless(group: Group) -> Group:
    """The same replicas without the operator's key, for traffic that the router did not decide on."""
    if group.first.auth is None:
        return group
    return replace(
        group,
        name=group.name.replace("model/", "open/", 1),
        stat_name=group.stat_name.replace("model/", "open/", 1),
        backends=tuple(replace(backend, auth=None) for backend in group.backends),
    )


def _digest(model: ProviderModel, backends: Iterable[Backend]) -> str:
    parts = [[b.scheme, b.host, b.port, b.path, b.weight, b.auth and secret_name(b.auth)] for b in backends]
    return hashlib.sha256(json.dumps([model.api_format, parts]).encode()).hexdigest()[:8]


def backend_cluster(group: Group, sources: Sources, buffer_bytes: int, ca_bundle: Path | None) -> pb.cluster.Cluster:
    """The cluster of one group of replicas."""
    several = len(group.backends) > 1
    return pb.cluster.Cluster(
        name=group.name,
        alt_stat_name=group.stat_name if group.stat_name != group.name else "",
        type=_discovery([backend.host for backend in group.backends]),
        # Containers often resolve AAAA records that they cannot reach.
        dns_lookup_family=pb.cluster.ClusterDnsLookupFamily.V4_PREFERRED,
        connect_timeout=pb.seconds(5),
        per_connection_buffer_limit_bytes=buffer_bytes,
        lb_policy=pb.cluster.ClusterLbPolicy.LEAST_REQUEST if several else pb.cluster.ClusterLbPolicy.ROUND_ROBIN,
        circuit_breakers=_unlimited(),
        outlier_detection=_outliers() if several else None,
        load_assignment=_assignment(group.name, [_endpoint(group, backend) for backend in group.backends]),
        transport_socket=_tls(group, ca_bundle) if group.first.scheme == "https" else None,
        typed_extension_protocol_options={_HTTP_OPTIONS: pb.pack(_http(group, sources))},
    )


def ext_proc_cluster(targets: Sequence[Target], buffer_bytes: int) -> pb.cluster.Cluster:
    """The router's own processes, watched by gRPC health checks."""
    http2 = pb.core.Http2ProtocolOptions(
        connection_keepalive=pb.core.KeepaliveSettings(interval=pb.seconds(30), timeout=pb.seconds(5))
    )
    options = pb.upstream_http.HttpProtocolOptions(
        explicit_http_config=pb.upstream_http.HttpProtocolOptionsExplicitHttpConfig(http2_protocol_options=http2)
    )
    return pb.cluster.Cluster(
        name=EXT_PROC_CLUSTER,
        type=_discovery([target.host for target in targets if target.path is None]),
        dns_lookup_family=pb.cluster.ClusterDnsLookupFamily.V4_PREFERRED,
        connect_timeout=pb.seconds(1),
        per_connection_buffer_limit_bytes=buffer_bytes,
        lb_policy=pb.cluster.ClusterLbPolicy.LEAST_REQUEST,
        circuit_breakers=_unlimited(),
        health_checks=[_health_check()],
        # Only when no process is healthy are unhealthy ones tried: a lone process that drains still serves.
        common_lb_config=pb.cluster.ClusterCommonLbConfig(healthy_panic_threshold=pb.types.Percent(value=1)),
        load_assignment=_assignment(EXT_PROC_CLUSTER, [_target_endpoint(target) for target in targets]),
        typed_extension_protocol_options={_HTTP_OPTIONS: pb.pack(options)},
    )


def _health_check() -> pb.core.HealthCheck:
    interval = pb.seconds(0.5)
    return pb.core.HealthCheck(
        timeout=pb.seconds(1),
        interval=interval,
        # Without it a listener that sees no traffic checks once a minute and notices neither a start nor a drain.
        no_traffic_interval=interval,
        no_traffic_healthy_interval=interval,
        unhealthy_threshold=2,
        healthy_threshold=1,
        grpc_health_check=pb.core.HealthCheckGrpcHealthCheck(service_name=""),
    )


def _discovery(hosts: Sequence[str]) -> pb.cluster.ClusterDiscoveryType:
    if all(is_ip(host) for host in hosts):
        return pb.cluster.ClusterDiscoveryType.STATIC
    # A single name may stand for a whole fleet whose records rotate: one logical host is what suits it.
    return (
        pb.cluster.ClusterDiscoveryType.LOGICAL_DNS if len(hosts) == 1 else pb.cluster.ClusterDiscoveryType.STRICT_DNS
    )


def _assignment(name: str, endpoints: list[pb.endpoint.LbEndpoint]) -> pb.endpoint.ClusterLoadAssignment:
    return pb.endpoint.ClusterLoadAssignment(
        cluster_name=name, endpoints=[pb.endpoint.LocalityLbEndpoints(lb_endpoints=endpoints)]
    )


def _endpoint(group: Group, backend: Backend) -> pb.endpoint.LbEndpoint:
    # With https the name also serves as SNI, where a port has no place.
    hostname = backend.host if backend.scheme == "https" else authority(backend)
    return pb.endpoint.LbEndpoint(
        load_balancing_weight=max(1, backend.weight),
        endpoint=pb.endpoint.Endpoint(address=pb.socket(backend.host, backend.port), hostname=hostname),
    )


def _target_endpoint(target: Target) -> pb.endpoint.LbEndpoint:
    if target.path is not None:
        address = pb.core.Address(pipe=pb.core.Pipe(path=target.path))
    else:
        address = pb.socket(target.host, target.port)
    return pb.endpoint.LbEndpoint(endpoint=pb.endpoint.Endpoint(address=address))


def _http(group: Group, sources: Sources) -> pb.upstream_http.HttpProtocolOptions:
    codec = pb.hcm.HttpFilter(
        name="envoy.filters.http.upstream_codec", typed_config=pb.pack(pb.upstream_codec.UpstreamCodec())
    )
    keys = credentials.filters(group.first.auth, group.model.api_format, sources)
    options = pb.upstream_http.HttpProtocolOptions(
        common_http_protocol_options=pb.core.HttpProtocolOptions(idle_timeout=pb.seconds(60)),
        http_filters=[_owned_headers(), *keys, codec],
    )
    if group.first.scheme == "https":
        options.auto_config = pb.upstream_http.HttpProtocolOptionsAutoHttpConfig()
    else:
        options.explicit_http_config = pb.upstream_http.HttpProtocolOptionsExplicitHttpConfig(
            http_protocol_options=pb.core.Http1ProtocolOptions(enable_trailers=True)
        )
    return options


def _owned_headers() -> pb.hcm.HttpFilter:
    """Keep router-owned headers from the backend, and a backend's look-alikes from the client.

    It stands in the cluster, where local replies never pass: those keep the headers that the router gave them. Trailers
    of requests go altogether: no model API reads them, and some servers take them for headers, of the next request too.
    """
    forged, internal = pb.remove_matching(ROUTER_HEADERS), pb.remove_matching(r"x-envoy-.*")
    mutations = pb.header_mutation.Mutations(
        # Who asks is nobody else's business either.
        request_mutations=[pb.remove_matching(OWNED_HEADERS), internal],
        request_trailers_mutations=[pb.remove_matching(".*")],
        response_mutations=[forged],
        response_trailers_mutations=[forged],
    )
    return pb.hcm.HttpFilter(
        name="drop_router_headers", typed_config=pb.pack(pb.header_mutation.HeaderMutation(mutations=mutations))
    )


def _tls(group: Group, ca_bundle: Path | None) -> pb.core.TransportSocket:
    validation = pb.tls.CertificateValidationContext(
        trusted_ca=pb.core.DataSource(filename=os.path.abspath(ca_bundle or find_ca_bundle()))
    )
    context = pb.tls.UpstreamTlsContext(common_tls_context=pb.tls.CommonTlsContext(validation_context=validation))
    hosts = {backend.host for backend in group.backends}
    if any(is_ip(host) for host in hosts):
        kind = pb.tls.SubjectAltNameMatcherSanType
        validation.match_typed_subject_alt_names = [
            pb.tls.SubjectAltNameMatcher(san_type=kind.IP_ADDRESS if is_ip(host) else kind.DNS, matcher=pb.exact(host))
            for host in sorted(hosts)
        ]
        context.auto_host_sni = not all(is_ip(host) for host in hosts)
    else:
        context.auto_host_sni = True
        context.auto_sni_san_validation = True
    return pb.core.TransportSocket(name="envoy.transport_sockets.tls", typed_config=pb.pack(context))


def _outliers() -> pb.cluster.OutlierDetection:
    """Rest a replica that cannot be reached or whose gateway fails; an LLM's own 500 says nothing about the replica."""
    return pb.cluster.OutlierDetection(
        interval=pb.seconds(1),
        base_ejection_time=pb.seconds(10),
        max_ejection_percent=50,
        split_external_local_origin_errors=True,
        consecutive_local_origin_failure=3,
        consecutive_gateway_failure=5,
        enforcing_consecutive_gateway_failure=100,
        enforcing_consecutive_5xx=0,
        enforcing_success_rate=0,
        enforcing_local_origin_success_rate=0,
    )


def _unlimited() -> pb.cluster.CircuitBreakers:
    # Envoy's 1,024 would turn a burst of slow completions into 503s; admission control is the backends' own affair.
    return pb.cluster.CircuitBreakers(
        thresholds=[
            pb.cluster.CircuitBreakersThresholds(
                max_connections=_UNLIMITED, max_pending_requests=_UNLIMITED, max_requests=_UNLIMITED, max_retries=1024
            )
        ]
    )
