"""From the dialect's models to a `Plan`: references resolved, defaults filled in, contradictions reported."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path as FilePath
from types import MappingProxyType

from router.config.compiler.candidates import Candidates
from router.config.compiler.catalogue import Catalogue
from router.config.compiler.context import Absent, Context, Describe, Names
from router.config.compiler.offers import compile_offers, warn_of_ways_round
from router.config.compiler.overload import compile_admission, compile_overload
from router.config.compiler.providers import compile_default, compile_entrypoints, compile_listeners, compile_models
from router.config.compiler.recipes import Recipes
from router.config.compiler.services import asks_for_records, compile_access, compile_replay, compile_tracing
from router.config.document import Document
from router.config.model import globals as dialect
from router.config.model.root import Root
from router.config.plan import Plan, Recipe, Service, Services
from router.config.problems import Path

DEFAULT_PORTS = {"extproc": 50051, "metrics": 9190, "management": 8080}
LOOPBACK = "127.0.0.1"


def compile_plan(
    document: Document,
    root: Root,
    cut: frozenset[Path],
    *,
    describe: Describe,
    folder: FilePath | None,
    absent: Absent | None = None,
) -> Plan:
    """The plan. When `document.problems` holds an error afterwards, the plan is not whole and must not be used.

    `absent` says what is wrong with a key that the router would need, where that is worth a warning.
    """
    context = Context(document, cut, describe, folder, absent)
    settings = root.global_ or dialect.Global.model_validate({})
    router = settings.router or dialect.Router.model_validate({})
    catalog = settings.model_catalog or dialect.ModelCatalog.model_validate({})
    listeners = compile_listeners(context, root.listeners)
    models = compile_models(context, root.providers)
    default_model = compile_default(context, root.providers, models)
    catalogue = Catalogue(context, settings.model_catalog)
    catalogue.check()
    recipes: Names[Recipe] = Names("recipe")
    recipes.foresee(context, "recipes")
    candidates = Candidates(context, catalogue, models, root.providers)
    compiler = Recipes(context, catalogue, models, default_model, candidates)
    for recipe in root.recipes:
        recipes.declare(context, recipe.at("name"), recipe.name, compiler.compile(recipe))
    entrypoints, default_entrypoint = compile_entrypoints(context, root.entrypoints, recipes, models)
    listeners = compile_offers(context, root.listeners, listeners, entrypoints, default_entrypoint, models)
    warn_of_ways_round(context, root.listeners, recipes.known, entrypoints)
    used = {name for recipe in recipes.known.values() for name in recipe.deployments}
    _warn_unused(context, root, catalogue, used, set(entrypoints.values()))
    return Plan(
        revision=revision(document),
        listeners=listeners,
        models=MappingProxyType(models.known),
        recipes=MappingProxyType(recipes.known),
        entrypoints=MappingProxyType(entrypoints),
        default_entrypoint=default_entrypoint,
        default_model=default_model.name if default_model else None,
        deployments=MappingProxyType(catalogue.only(used)),
        services=_services(
            context,
            settings.services,
            listeners_at={(it.address, it.port): it.at("port") for it in root.listeners},
            asking=asks_for_records(root.recipes),
        ),
        signal_timeout_ms=catalog.signal_timeout_ms,
        max_body_bytes=router.max_body_bytes,
        streamed_body=router.streamed_body.enabled if router.streamed_body else False,
        clear_route_cache=router.clear_route_cache,
        ask=catalog.ask,
        overload=compile_overload(catalog.on_signal_overload),
        admission=compile_admission(context, router),
    )


def revision(document: Document) -> str:
    """A short name of what the document says: comments, order of keys and the environment do not change it."""
    text = json.dumps(document.raw, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _services(
    context: Context,
    services: dialect.Services | None,
    *,
    listeners_at: Mapping[tuple[str, int], Path],
    asking: Path | None,
) -> Services:
    resolved: dict[str, Service] = {}
    taken = {where: "a listener" for where in listeners_at}
    for name, default_port in DEFAULT_PORTS.items():
        written: dialect.Service | None = getattr(services, name, None)
        address = written.address if written and written.address is not None else LOOPBACK
        port = written.port if written and written.port is not None else default_port
        if (address, port) in taken:
            message, hint = f"{address}:{port} is already the address of {taken[address, port]}", "choose another port"
            path: Path = ("global", "services", name, "port")
            if written is None and (address, port) in listeners_at:
                path = listeners_at[address, port]  # what was written is the place to mend
                message = f"{address}:{port} is the default address of global.services.{name}"
            context.error(path, message, hint)
        taken.setdefault((address, port), name)
        resolved[name] = Service(address, port)
    api = services.management_api if services else None
    replay = compile_replay(context, services.router_replay if services else None, asking)
    access = compile_access(context, api, resolved["management"].address)
    tracing = compile_tracing(services.observability if services else None)
    return Services(**resolved, access=access, replay=replay, tracing=tracing)


def _warn_unused(context: Context, root: Root, catalogue: Catalogue, used: set[str], published: set[str]) -> None:
    if any(problem.severity == "error" for problem in context.document.problems):
        return  # what was refused may well have used it
    for recipe in root.recipes:
        if recipe.name not in published:
            message = f"no entrypoint publishes {context.shown(recipe.name, recipe.at('name'))}"
            context.warn(recipe.at("name"), message, "it never gets a request")
    for name, deployment in catalogue.deployments.items():
        if name not in used:
            context.warn(deployment.at(), "no rule that is asked uses this deployment", "it is not started", key=True)


__all__ = ["DEFAULT_PORTS", "Context", "compile_plan", "revision"]
