"""Keys of a runtime that is published: where they come from, and whether a request has one.

Keys are compared as digests, all of them every time, so that the time of a comparison tells nothing about any key.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping, Sequence
from enum import Enum
from hashlib import sha256
from pathlib import Path


class KeyFault(ValueError):
    """Keys, or an address without keys, that a runtime must not start with; the message tells what to do."""


class Presented(Enum):
    """What a request shows: nothing, something else, or a key."""

    NOTHING = "nothing"
    WRONG = "wrong"
    RIGHT = "right"


class Keys:
    """The keys that are accepted; none: everybody is."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        self._digests = [sha256(key.encode()).digest() for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def check(self, headers: Mapping[str, str]) -> Presented:
        """Look for a key in `Authorization: Bearer`, else in `Api-Key`. Names of headers are lower case."""
        if not self._digests:
            return Presented.RIGHT
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if not given.strip() or scheme.lower() != "bearer":
            given = headers.get("api-key", "")
        if not given.strip():
            return Presented.WRONG if scheme else Presented.NOTHING
        digest = sha256(given.strip().encode("utf-8", "surrogateescape")).digest()
        found = [hmac.compare_digest(digest, known) for known in self._digests]
        return Presented.RIGHT if any(found) else Presented.WRONG


def read_keys(variable: str | None, file: Path | None, environ: Mapping[str, str]) -> Keys:
    """Keys of an environment variable (one) and of a file (one a line; blank lines and `#` are passed over).

    Raises KeyFault when one that is named holds no key, and OSError when the file cannot be read.
    """
    keys: list[str] = []
    if variable is not None:
        value = environ.get(variable, "").strip()
        if not value:
            raise KeyFault(f"--api-key-env: the environment variable {variable} holds no key")
        keys.append(value)
    if file is not None:
        lines = [line.strip() for line in file.read_text("utf-8").splitlines()]
        found = [line for line in lines if line and not line.startswith("#")]
        if not found:
            raise KeyFault(f"--api-key-file: {file} holds no key")
        keys += found
    return Keys(keys)


def refuse_open(host: str, keys: Keys, *, insecure: bool) -> None:
    """Refuse to serve everybody who can reach a public address. Raises KeyFault."""
    if keys or insecure or is_loopback(host):
        return
    raise KeyFault(
        f"{host} can be reached from elsewhere and no key is asked for: give --api-key-env or --api-key-file, "
        "or --insecure-no-auth where something else lets only the right callers in"
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address; a name other than localhost counts as public."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
