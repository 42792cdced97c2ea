"""Where a decision model is: what each kind of deployment takes, and whether its addresses can be one.

A remote API's dialect is told by the path that its endpoint ends in, as the protocols name it, so that no key of the
configuration can contradict the address.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from router.config.compiler.context import Context
from router.config.deployments import Dialect, KeySource
from router.config.model import globals as dialect
from router.config.problems import Path
from router.questions import Capabilities, QuestionType

_RUNTIME = re.compile(r"https?://[^\s/?#@]+/?|unix:///\S+")
_REMOTE = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?")
_OF_A_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_PATHS = {"/v1/systemone": Dialect.SYSTEMONE, "/v1/decisions": Dialect.OPENAI}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
BASE_TYPES = frozenset({QuestionType.NOUL, QuestionType.CHOICE, QuestionType.SCORE})
"""What every System One API answers."""


def check_deployment(context: Context, deployment: dialect.Deployment) -> None:
    """Report what is wrong with a deployment by itself, asked or not."""
    for endpoint, path in addresses(deployment):
        if not context.is_unset(path):
            _check_address(context, endpoint, path, remote=is_remote(deployment))
    if is_remote(deployment):
        _check_remote(context, deployment)
    else:
        _check_runtime(context, deployment)
    if deployment.endpoint is not None and deployment.replicas is not None:
        hint = "list every endpoint in replicas"
        context.error(deployment.at("endpoint"), "endpoint and replicas cannot both be given", hint, key=True)
    _check_unique(context, deployment)


def is_remote(deployment: dialect.Deployment) -> bool:
    """Whether the model is behind an API of somebody else's."""
    return deployment.provider == "systemone"


def addresses(deployment: dialect.Deployment) -> list[tuple[str, Path]]:
    """Every endpoint as written, with its place."""
    if deployment.endpoint is not None:
        return [(deployment.endpoint, deployment.at("endpoint"))]
    return [(replica.endpoint, replica.at("endpoint")) for replica in deployment.replicas or ()]


def dialect_of(endpoint: str) -> Dialect:
    """How a remote API is spoken to. An address that says neither was reported already."""
    path = urlsplit(endpoint).path.rstrip("/")
    return next((known for ending, known in _PATHS.items() if path.endswith(ending)), Dialect.SYSTEMONE)


def key_source(context: Context, deployment: dialect.Deployment) -> KeySource | None:
    """Where the key of a model that is not ours is; warns when it cannot be had here, if that is asked for."""
    auth = deployment.auth
    if auth is None or (auth.api_key_env is None) == (auth.api_key_file is None):
        return None
    source = KeySource(auth.api_key_env, auth.api_key_file)
    path = auth.at("api_key_env" if source.env is not None else "api_key_file")
    reason = context.absent(source) if context.absent is not None and not context.is_unset(path) else None
    if reason is not None:
        context.warn(path, reason, "the router does not start without it")
    return source


def written_capabilities(deployment: dialect.Deployment) -> Capabilities:
    """What a remote API's model can be asked, as far as the configuration and its dialect say."""
    written = deployment.capabilities.question_types if deployment.capabilities else None
    types = BASE_TYPES if written is None else frozenset(map(QuestionType, written))
    return Capabilities(types)


def _check_remote(context: Context, deployment: dialect.Deployment) -> None:
    at = deployment.at
    places = addresses(deployment)
    if not places and not context.is_cut(at("endpoint")) and not context.is_cut(at("replicas")):
        hint = "add endpoint: https://host/v1/systemone"
        context.error(at(), "a remote API needs an endpoint", hint, key=True)
    context.need(deployment, "model")
    for key in ("artifact", "revision", "device", "served_name", "enable_shared_context"):
        if deployment.has(key):
            hint = "write model" if key == "served_name" else "remove it"
            context.error(at(key), f"{key} has no effect with provider systemone", hint, key=True)
    spoken = {dialect_of(endpoint) for endpoint, path in places if not context.is_unset(path)}
    if len(spoken) > 1:
        context.error(at("replicas"), "replicas of one model must speak one dialect", key=True)
    if spoken == {Dialect.OPENAI}:
        beyond = written_capabilities(deployment).question_types - BASE_TYPES
        if beyond and deployment.capabilities is not None:
            named = " and ".join(sorted(beyond))
            hint = "leave them out: a set is put together from predicates"
            path = deployment.capabilities.at("question_types")
            context.error(path, f"the dialect of /v1/decisions has no {named} questions", hint, key=True)
    _check_auth(context, deployment)


def _check_auth(context: Context, deployment: dialect.Deployment) -> None:
    auth = deployment.auth
    if auth is None:
        return
    if auth.api_key_env is not None and auth.api_key_file is not None:
        hint = "keep one of them"
        context.error(auth.at("api_key_file"), "api_key_env and api_key_file cannot both be given", hint, key=True)
    if auth.api_key_env is None and auth.api_key_file is None and not context.is_cut(auth.at()):
        context.error(auth.at(), "needs api_key_env or api_key_file", key=True)
    for endpoint, path in addresses(deployment):
        if context.is_unset(path) or not _REMOTE.fullmatch(endpoint):
            continue  # a socket among them: nobody else can listen in
        url = urlsplit(endpoint)
        if url.scheme == "http" and url.hostname not in _LOOPBACK:
            context.warn(path, "the key travels unencrypted", "use https://")


def _check_runtime(context: Context, deployment: dialect.Deployment) -> None:
    at = deployment.at
    places = ("artifact", "endpoint", "replicas")
    artifact = deployment.artifact is not None
    attached = deployment.endpoint is not None or deployment.replicas is not None
    if artifact and attached:
        other = "endpoint" if deployment.endpoint is not None else "replicas"
        context.error(at(other), f"artifact and {other} cannot both be given", "keep one of them", key=True)
    if not artifact and not attached and not any(context.is_cut(at(key)) for key in places):
        hint = "artifact: a model that the router starts; endpoint: one that already runs"
        context.error(at(), "needs artifact or endpoint", hint, key=True)
    for key in ("device", "revision", "enable_shared_context"):
        if attached and deployment.has(key):
            context.error(at(key), "has no effect with endpoint", "remove it: the model already runs", key=True)
    if deployment.revision is not None and deployment.artifact is not None:
        _check_revision(context, deployment.artifact, deployment)
    if artifact and deployment.served_name is not None:
        context.error(at("served_name"), "has no effect with artifact", "remove it", key=True)
    if artifact and deployment.has("auth"):
        context.error(at("auth"), "has no effect with artifact", "remove it", key=True)
    for key, hint in (("model", "write served_name"), ("capabilities", "a runtime says itself")):
        if deployment.has(key):
            context.error(at(key), f"{key} is for provider systemone", hint, key=True)
    _check_auth(context, deployment)


def _check_revision(context: Context, artifact: str, deployment: dialect.Deployment) -> None:
    if context.is_unset(deployment.at("artifact")) or _OF_A_HUB.fullmatch(artifact):
        return
    if _OF_A_HUB.fullmatch(artifact.partition("@")[0]):
        context.error(deployment.at("revision"), "artifact names a revision already", "keep one of them", key=True)
    else:
        hint = "remove it, or write owner/name"
        context.error(deployment.at("revision"), "has no effect: the artifact is not of a hub", hint, key=True)


def _check_unique(context: Context, deployment: dialect.Deployment) -> None:
    seen: set[str] = set()
    for endpoint, path in addresses(deployment):
        if endpoint.rstrip("/") in seen:
            context.error(path, f"the endpoint {context.shown(endpoint, path)} is listed twice")
        seen.add(endpoint.rstrip("/"))


def _check_address(context: Context, text: str, path: Path, *, remote: bool) -> None:
    shown = context.shown(text, path)
    if not (_REMOTE if remote else _RUNTIME).fullmatch(text):
        what = "a remote API" if remote else "a runtime"
        allowed = (
            "https://host/v1/systemone or https://host/v1/decisions"
            if remote
            else "http://host:port, https://host:port or unix:///path"
        )
        context.error(path, f"{shown} is not the address of {what}", f"write {allowed}")
        return
    try:
        url = urlsplit(text)
        url.port  # noqa: B018 - reading it is the check
    except ValueError:
        context.error(path, f"{shown} has no usable port", "a port is from 1 to 65535")
        return
    if remote and not url.path.rstrip("/").endswith(tuple(_PATHS)):
        hint = "the ending says the dialect: /v1/systemone, or /v1/decisions for OpenAI's"
        context.error(path, f"{shown} ends in neither /v1/systemone nor /v1/decisions", hint)
