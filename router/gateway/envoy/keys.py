"""Where keys are, and whether they are there: asked before Envoy is started. Light: loads nothing of Envoy's types."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from router.config.plan import Auth, Plan


def secret_name(auth: Auth) -> str:
    """The name under which Envoy knows a key. It says where the key comes from, never what it is."""
    return f"key/env/{auth.env}" if auth.env is not None else f"key/file/{auth.file}"


def missing_keys(plan: Plan, environ: Mapping[str, str]) -> tuple[str, ...]:
    """What would leave a backend without its key, one sentence a problem. Call before Envoy is started.

    A key file is opened only to see that Envoy can: its content is looked at for being empty or more than one line.
    """
    problems: dict[str, None] = {}
    for model in plan.models.values():
        for auth in (backend.auth for backend in model.backends):
            problem = _missing(auth, environ) if auth else None
            if problem:
                problems[f"model {model.name!r}: {problem}"] = None
    return tuple(problems)


def _missing(auth: Auth, environ: Mapping[str, str]) -> str | None:
    if auth.env is not None:
        return None if environ.get(auth.env) else f"environment variable {auth.env} is unset or empty"
    try:
        content = Path(auth.file or "").read_bytes()
    except OSError as error:
        return f"key file {auth.file} cannot be read: {error.strerror}"
    if not content.strip():
        return f"key file {auth.file} is empty"
    if b"\n" in content.strip() or b"\r" in content.strip():
        return f"key file {auth.file} holds more than one line"
    return None
