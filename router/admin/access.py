"""Who may use the management API: bearer tokens with roles, or, on a loopback address without any, this machine.

Tokens are compared as digests, all of them every time, so that the time of a comparison tells nothing about any token.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from enum import Enum
from hashlib import sha256

from router.config.credentials import KeyUnavailable, read_key
from router.config.deployments import KeySource
from router.config.services import AccessToken, Role, is_loopback

SHORTEST_TOKEN = 16


class Admission(Enum):
    """What becomes of a request."""

    GRANTED = "granted"
    NO_TOKEN = "no_token"  # noqa: S105 - an answer, not a secret
    NOT_ALLOWED = "not_allowed"


class Access:
    """The tokens that are accepted, with what each allows. Without any, everybody on this machine may do everything.

    Then a request must name this machine as its `Host`: a web page that a browser here shows cannot do that.
    """

    def __init__(self, tokens: Iterable[tuple[str, frozenset[Role]]] = ()) -> None:
        self._tokens = [(_digest(token), roles) for token, roles in tokens]

    def admit(self, headers: Mapping[str, str], role: Role) -> Admission:
        """Whether a request with these headers may do what needs `role`."""
        if not self._tokens:
            return Admission.GRANTED if is_loopback(_name(headers.get("Host", ""))) else Admission.NOT_ALLOWED
        scheme, _, given = headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not given.strip():
            return Admission.NO_TOKEN
        digest = _digest(given.strip())
        found = [roles for known, roles in self._tokens if hmac.compare_digest(digest, known)]
        if not found:
            return Admission.NO_TOKEN
        return Admission.GRANTED if any(role in roles for roles in found) else Admission.NOT_ALLOWED


def read_access(tokens: Iterable[AccessToken], environ: Mapping[str, str]) -> Access:
    """Read the tokens. Raises KeyUnavailable for one that is absent, or too short to be one."""
    found: list[tuple[str, frozenset[Role]]] = []
    for token in tokens:
        value = read_key(KeySource(token.env, token.file), environ)
        if len(value) < SHORTEST_TOKEN:
            where = f"environment variable {token.env}" if token.env is not None else f"file {token.file}"
            raise KeyUnavailable(f"the token in {where} is shorter than {SHORTEST_TOKEN} characters")
        found.append((value, token.roles))
    return Access(found)


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogateescape")).digest()


def _name(host: str) -> str:
    """A `Host` without its port."""
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host
