"""What the router's own services are told: who may use the management API."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Literal

Role = Literal["read", "write", "detail"]


@dataclass(frozen=True, slots=True)
class AccessToken:
    """Where a bearer token is found (exactly one of `env` and `file` is set), and what its bearer may do.

    `read`: previews and what was recorded. `detail`: recorded request text, too. `write`: whatever changes something.
    """

    env: str | None
    file: str | None
    roles: frozenset[Role]


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address; a name other than localhost counts as public."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
