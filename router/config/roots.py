"""Where the backends that undecided traffic can reach serve their model APIs."""

from __future__ import annotations

from router.config.plan import Plan


def api_roots(plan: Plan) -> frozenset[str]:
    """Path prefixes other than `/v1` at which the hosts that take undecided traffic serve a model API.

    What a client sends to `/v1/...` reaches such a host under the prefix. By its full path it would be other traffic to
    the router, and reach the model undecided.
    """
    default = plan.models.get(plan.default_model) if plan.default_model is not None else None
    hosts = {(backend.host, backend.port) for backend in default.backends} if default else set()
    paths = {
        backend.path
        for model in plan.models.values()
        for backend in model.backends
        if (backend.host, backend.port) in hosts
    }
    return frozenset(paths - {"/v1"})
