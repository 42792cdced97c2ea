"""The router's own services: who may use the management API."""

from __future__ import annotations

from router.config.compiler.context import Context
from router.config.model.services import ManagementApi, ManagementToken
from router.config.services import AccessToken, is_loopback


def compile_access(context: Context, api: ManagementApi | None, address: str) -> tuple[AccessToken, ...]:
    """The tokens of the management API, which listens on `address`. Open only where nobody else reaches it."""
    written = api.auth.tokens if api is not None and api.auth is not None else []
    tokens = tuple(token for each in written if (token := _token(context, each)) is not None)
    path = ("global", "services", "management_api")
    if not written and not is_loopback(address) and not context.is_cut(path):
        context.error(
            ("global", "services", "management", "address"),
            f"the management API on {context.shown(address)} can be reached from elsewhere, and nobody needs a token",
            "name one in global.services.management_api.auth.tokens, or keep the address 127.0.0.1",
        )
    return tokens


def _token(context: Context, token: ManagementToken) -> AccessToken | None:
    if (token.env is None) == (token.file is None):
        if not context.is_cut(token.at()):
            context.error(token.at(), "needs exactly one of env and file", key=True)
        return None
    return AccessToken(token.env, token.file, frozenset(token.roles))
