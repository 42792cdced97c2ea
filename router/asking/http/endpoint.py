"""Where a server of the protocols is: a Unix socket or an address, perhaps with TLS, and what its paths begin with."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Final

from yarl import URL

DECIDE_PATH: Final = "v1/systemone"
OPENAI_PATH: Final = "v1/decisions"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server. `root` is the path that every other begins with (it ends in `/`), `decide` the one to ask at.

    Either `socket` is set, the path of a Unix socket, or `host` and `port`. `tls` is None for plain text.
    """

    root: str
    decide: str
    authority: str
    socket: str | None = None
    host: str = ""
    port: int = 0
    tls: ssl.SSLContext | None = None


def read_endpoint(written: str) -> Endpoint:
    """`unix:///path`, `http://host:port`, or a full URL that ends in a path of the protocols.

    Certificates are checked against the system's authorities. Raises ValueError, naming what is allowed.
    """
    if written.startswith("unix://"):
        path = written.removeprefix("unix://")
        if not path.startswith("/"):
            raise ValueError(f"endpoint {written!r}: write an absolute path, unix:///run/model.sock")
        return Endpoint("/", f"/{DECIDE_PATH}", "localhost", socket=path)
    url = URL(written)
    if url.scheme not in ("http", "https") or not url.raw_host or not url.port:
        raise ValueError(f"endpoint {written!r}: use http://host:port, https://host:port or unix:///path")
    if url.raw_user is not None or url.raw_password is not None:
        raise ValueError("an endpoint holds a user name or a password: give the key by its variable instead")
    path = url.raw_path.rstrip("/")
    decide = OPENAI_PATH if path.endswith("/" + OPENAI_PATH) else DECIDE_PATH
    root = path.removesuffix("/" + decide) + "/"
    host = f"[{url.raw_host}]" if ":" in url.raw_host else url.raw_host
    return Endpoint(
        root=root,
        decide=root + decide,
        authority=host if url.is_default_port() else f"{host}:{url.port}",
        host=url.raw_host,
        port=url.port,
        tls=ssl.create_default_context() if url.scheme == "https" else None,
    )
