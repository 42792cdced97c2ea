"""Provider keys: Envoy reads them itself and writes them on the way to the backend.

They pass through no header mutation of the router, no rendered file and no log of ours: the configuration names an
environment variable or a file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from router.config.plan import ApiFormat, Auth, Plan
from router.gateway.envoy import proto as pb
from router.gateway.envoy.keys import secret_name
from router.gateway.envoy.names import CREDENTIAL_HEADERS
from router.gateway.envoy.sources import Sources


@dataclass(frozen=True, slots=True)
class Placement:
    """The header that carries a key in a provider dialect, and what stands before the key."""

    header: str
    prefix: str


PLACEMENTS: Mapping[ApiFormat, Placement] = {
    ApiFormat.CHAT: Placement("authorization", "Bearer "),
    ApiFormat.RESPONSES: Placement("authorization", "Bearer "),
    ApiFormat.MESSAGES: Placement("x-api-key", ""),
}


def secrets(plans: Iterable[Plan]) -> list[pb.tls.Secret]:
    """Every key that any backend of the plans uses, once."""
    found = {b.auth: None for plan in plans for model in plan.models.values() for b in model.backends if b.auth}
    return [_secret(auth) for auth in found]


def _secret(auth: Auth) -> pb.tls.Secret:
    if auth.env is not None:
        source = pb.core.DataSource(environment_variable=auth.env)
    else:
        path = os.path.abspath(auth.file or "")
        # Watching the folder sees both a rename over the file and the symlink swap of a mounted Kubernetes secret.
        source = pb.core.DataSource(
            filename=path, watched_directory=pb.core.WatchedDirectory(path=os.path.dirname(path))
        )
    return pb.tls.Secret(name=secret_name(auth), generic_secret=pb.tls.GenericSecret(secret=source))


def filters(auth: Auth | None, api_format: ApiFormat, sources: Sources) -> list[pb.hcm.HttpFilter]:
    """Upstream filters that put the backend's key in place of every key the client sent.

    Empty without `auth`: then the client's own headers go through.
    """
    if auth is None:
        return []
    place = PLACEMENTS[api_format]
    drop = [pb.mutation.HeaderMutation(remove=name) for name in CREDENTIAL_HEADERS]
    mutations = pb.header_mutation.Mutations(request_mutations=drop)
    credential = pb.generic_credential.Generic(
        credential=pb.tls.SdsSecretConfig(name=secret_name(auth), sds_config=sources.secret(secret_name(auth))),
        header=place.header,
        header_value_prefix=place.prefix,
    )
    inject = pb.injector.CredentialInjector(
        overwrite=True,
        allow_request_without_credential=False,
        credential=pb.core.TypedExtensionConfig(
            name="envoy.http.injected_credentials.generic", typed_config=pb.pack(credential)
        ),
    )
    return [
        pb.hcm.HttpFilter(
            name="drop_client_key",
            typed_config=pb.pack(pb.header_mutation.HeaderMutation(mutations=mutations)),
        ),
        pb.hcm.HttpFilter(name="inject_key", typed_config=pb.pack(inject)),
    ]
