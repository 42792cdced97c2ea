"""Addresses that Envoy dials, and what kind of address a host is."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import PurePosixPath

from router.config.plan import Service

_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - compared with, never bound


@dataclass(frozen=True, slots=True)
class Target:
    """A TCP address (`host`, `port`) or, when `path` is set, a Unix socket."""

    host: str = ""
    port: int = 0
    path: str | None = None

    def __str__(self) -> str:
        if self.path is not None:
            return f"unix://{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.path is not None:
            return True
        return ipaddress.ip_address(self.host).is_loopback if is_ip(self.host) else self.host == "localhost"


def parse_target(text: str) -> Target:
    """Read `host:port`, `[v6]:port`, `unix:///path` or `unix:/path`.

    Raises:
        ValueError: The text is none of these.
    """
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        path = path.removeprefix("//") if path.startswith("///") else path
        if not PurePosixPath(path).is_absolute():
            raise ValueError(f"{text!r}: a Unix socket needs an absolute path, such as unix:///run/router.sock")
        return Target(path=path)
    host, separator, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not separator or not host or not port.isascii() or not port.isdigit() or not 0 <= int(port) <= 65535:
        raise ValueError(f"{text!r}: expected host:port or unix:///path")
    return Target(host=host, port=int(port))


def dial(service: Service) -> Target:
    """Where a client on the same machine reaches a service: a wildcard address becomes the loopback."""
    if service.address.startswith("unix:"):
        return parse_target(service.address)
    return Target(host=_ANY.get(service.address, service.address), port=service.port)


def is_ip(host: str) -> bool:
    """Whether a host is an IP address, which needs no resolver."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
