"""What Envoy starts from."""

from __future__ import annotations

from collections.abc import Sequence

from router.gateway.envoy import proto as pb
from router.gateway.envoy.filenames import CLUSTERS, LISTENERS
from router.gateway.envoy.sources import Sources
from router.gateway.envoy.targets import Target

_MAX_CONNECTIONS = 50_000


def bootstrap(
    sources: Sources,
    admin: Target,
    listeners: Sequence[pb.listener.Listener],
    clusters: Sequence[pb.cluster.Cluster],
    secrets: Sequence[pb.tls.Secret],
) -> pb.bootstrap.Bootstrap:
    """A bootstrap that holds these resources; with `sources.folder` it also follows the resource files there.

    Raises:
        ValueError: The admin interface would be reachable from outside: whoever reaches it owns the proxy.
    """
    if not admin.loopback:
        raise ValueError(f"Envoy's admin interface must listen on the loopback or a Unix socket, not on {admin}")
    dynamic = None
    if sources.folder is not None:
        dynamic = pb.bootstrap.BootstrapDynamicResources(
            lds_config=sources.watched(LISTENERS), cds_config=sources.watched(CLUSTERS)
        )
    return pb.bootstrap.Bootstrap(
        node=pb.core.Node(id="pointsman", cluster="pointsman"),
        admin=pb.bootstrap.Admin(address=_admin_address(admin)),
        static_resources=pb.bootstrap.BootstrapStaticResources(
            listeners=list(listeners), clusters=list(clusters), secrets=list(secrets)
        ),
        dynamic_resources=dynamic,
        overload_manager=_overload(),
    )


def _admin_address(admin: Target) -> pb.core.Address:
    if admin.path is not None:
        return pb.core.Address(pipe=pb.core.Pipe(path=admin.path, mode=0o600))
    return pb.socket("127.0.0.1" if admin.host == "localhost" else admin.host, admin.port)


def _overload() -> pb.overload.OverloadManager:
    monitor = pb.connection_monitor.DownstreamConnectionsConfig(max_active_downstream_connections=_MAX_CONNECTIONS)
    return pb.overload.OverloadManager(
        resource_monitors=[
            pb.overload.ResourceMonitor(
                name="envoy.resource_monitors.global_downstream_max_connections", typed_config=pb.pack(monitor)
            )
        ]
    )
