"""Backends, listeners and entrypoints: where requests come from and where they can go."""

from __future__ import annotations

import re
from urllib.parse import SplitResult, urlsplit

from router.config.compiler.context import Context, Names
from router.config.measures import Price
from router.config.model import listeners as written_listeners
from router.config.model import providers as dialect
from router.config.model.recipes import Entrypoint
from router.config.plan import ApiFormat, Auth, Backend, Listener, ProviderModel, Recipe
from router.config.problems import Path

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"([\d.]+)(ms|s|m|h)")
_EXAMPLE = "write a full URL, such as http://127.0.0.1:8000/v1"
_PLACEHOLDER = urlsplit("http://unset.invalid/")


def compile_models(context: Context, providers: dialect.Providers | None) -> Names[ProviderModel]:
    """The provider models by name."""
    names: Names[ProviderModel] = Names("provider model")
    names.foresee(context, "providers", "models")
    for model in providers.models if providers else ():
        context.need(model, "backend_refs")
        refs = model.backend_refs or []
        backends = tuple(backend for ref in refs if (backend := _backend(context, ref)) is not None)
        whole = bool(backends) and len(backends) == len(refs)
        identity = model.provider_model_id or model.name
        resolved = _model(model, identity, backends) if whole else None
        names.declare(context, model.at("name"), model.name, resolved)
    return names


def _model(model: dialect.ProviderModel, identity: str, backends: tuple[Backend, ...]) -> ProviderModel:
    pricing = model.pricing
    price = Price(pricing.currency, pricing.prompt_per_1m, pricing.completion_per_1m) if pricing is not None else None
    return ProviderModel(
        model.name,
        ApiFormat(model.api_format),
        identity,
        backends,
        price,
        model.quality_score,
        model.context_window_size,
    )


def _backend(context: Context, ref: dialect.BackendRef) -> Backend | None:
    auth = _auth(context, ref.auth) if ref.auth is not None else None
    path = ref.at("endpoint")
    url = _url(context, ref.endpoint, path)
    if url is None or (ref.auth is not None and auth is None):
        return None
    default_port = 443 if url.scheme == "https" else 80
    return Backend(
        scheme="https" if url.scheme == "https" else "http",
        host=url.hostname or "",
        port=url.port or default_port,
        path=url.path.rstrip("/"),
        weight=ref.weight,
        auth=auth,
    )


def _auth(context: Context, auth: dialect.Auth) -> Auth | None:
    if auth.api_key_env is not None and auth.api_key_file is not None:
        hint = "keep one of them"
        context.error(auth.at("api_key_file"), "api_key_env and api_key_file cannot both be given", hint, key=True)
        return None
    if auth.api_key_env is None and auth.api_key_file is None:
        if not context.is_cut(auth.at()):
            context.error(auth.at(), "needs api_key_env or api_key_file", key=True)
        return None
    return Auth(auth.api_key_env, auth.api_key_file)


def _url(context: Context, text: str, path: Path) -> SplitResult | None:
    """The endpoint's parts, or None after saying what is wrong with it."""
    if context.is_unset(path):
        return _PLACEHOLDER
    try:
        url = urlsplit(text)
        reason = _wrong_with(url, text)
    except ValueError:
        url, reason = None, "is not a URL"
    if reason is None:
        return url
    context.error(path, f"{context.shown(text, path)} {reason}", _EXAMPLE)
    return None


def _wrong_with(url: SplitResult, text: str) -> str | None:
    if url.scheme not in ("http", "https") or not text.startswith(f"{url.scheme}://"):
        return "does not start with http:// or https://"
    if url.username is not None or url.password is not None:
        return "holds a user name or password; keys belong in auth"
    if not url.hostname or url.port == 0 or any(character.isspace() for character in text):
        return "has no usable host and port"
    if url.query or url.fragment or "?" in text or "#" in text:
        return "has a query or fragment, which an endpoint cannot have"
    return None


def compile_default(
    context: Context, providers: dialect.Providers | None, models: Names[ProviderModel]
) -> ProviderModel | None:
    """The model of requests that nothing decides."""
    if providers is None or providers.defaults is None or providers.defaults.model is None:
        return None
    return models.find(context, providers.defaults.model, providers.defaults.at("model"))


def compile_listeners(context: Context, listeners: list[written_listeners.Listener]) -> tuple[Listener, ...]:
    """The listeners, with no two on one address or of one name."""
    names: Names[Listener] = Names("listener")
    bound: dict[tuple[str, int], str] = {}
    for listener in listeners:
        resolved = Listener(
            name=listener.name,
            address=listener.address,
            port=listener.port,
            idle_timeout_s=_seconds(listener.timeout),
            refuse_unknown_paths=listener.unknown_paths == "refuse",
            trusted_peers=_trusted(context, listener),
            debug=listener.debug is not None and listener.debug.allow,
        )
        names.declare(context, listener.at("name"), listener.name, resolved)
        where = (listener.address, listener.port)
        if where in bound:
            message = f"the listener {context.shown(bound[where])} already has this address and port"
            context.error(listener.at("port"), message)
        bound.setdefault(where, listener.name)
        if resolved.idle_timeout_s == 0:
            context.error(listener.at("timeout"), "must be longer than nothing")
    if not listeners and not context.is_cut(("listeners",)):
        context.warn(("listeners",), "no listener: Envoy has nowhere to take requests", "add name, address and port")
    return tuple(names.known.values())


def _trusted(context: Context, listener: written_listeners.Listener) -> tuple[str, ...]:
    identity = listener.identity
    if identity is None:
        return ()
    if identity.trust_headers and not identity.trusted_peers and not context.is_cut(identity.at("trusted_peers")):
        hint = "name the proxies that authenticate; a client could write the headers itself"
        context.error(identity.at(), "trust_headers needs trusted_peers", hint, key=True)
    if identity.trusted_peers and not identity.trust_headers and not context.is_cut(identity.at("trust_headers")):
        context.warn(identity.at("trusted_peers"), "has no effect without trust_headers: true", key=True)
    return tuple(identity.trusted_peers) if identity.trust_headers else ()


def _seconds(text: str) -> float:
    match = _DURATION.fullmatch(text)
    return float(match[1]) * _UNITS[match[2]] if match else 1200.0


def compile_entrypoints(
    context: Context, entrypoints: list[Entrypoint], recipes: Names[Recipe], models: Names[ProviderModel]
) -> tuple[dict[str, str], str | None]:
    """Public model names with their recipes, and the recipe of requests that name no model."""
    published: dict[str, str] = {}
    default: Entrypoint | None = None
    for entrypoint in entrypoints:
        recipe = recipes.find(context, entrypoint.recipe, entrypoint.at("recipe"))
        for index, name in enumerate(entrypoint.model_names):
            path = entrypoint.at_item("model_names", index)
            if name in published:
                context.error(path, f"the name {context.shown(name, path)} is already published")
            elif name in models.known or name in models.ghosts:
                message = f"{context.shown(name, path)} is the name of a provider model"
                context.error(path, message, "publish the recipe under another name")
            published.setdefault(name, entrypoint.recipe)
        if entrypoint.default and default is not None:
            message = "only one entrypoint can be the default"
            context.error(
                entrypoint.at("default"), message, f"recipe {context.shown(default.recipe)} already is", key=True
            )
        if entrypoint.default and recipe is not None:
            default = default or entrypoint
    if not entrypoints and not context.is_cut(("entrypoints",)):
        hint = "add entrypoints: [{model_names: [auto], recipe: default, default: true}]"
        context.error(("entrypoints",), "no recipe is published under any model name", hint)
    return published, default.recipe if default else None
