"""The router's own API keys: read from the environment or a file when a model is connected, and never shown.

Keys of LLM backends are not these: Envoy reads those itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from router.config.deployments import KeySource


class KeyUnavailable(ValueError):
    """The key cannot be had. The message names the place and never holds the key."""


def read_key(source: KeySource, environ: Mapping[str, str]) -> str:
    """The key, without white space around it. Raises KeyUnavailable."""
    if source.env is not None:
        name, text = f"environment variable {source.env}", environ.get(source.env, "")
    else:
        name, text = f"key file {source.file}", _content(source.file or "")
    key = text.strip()
    if not key:
        raise KeyUnavailable(f"{name} is unset or empty" if source.env is not None else f"{name} is empty")
    if not key.isascii() or not key.isprintable():
        raise KeyUnavailable(f"{name} does not hold one line of printable ASCII characters")
    return key


def why_absent(source: KeySource, environ: Mapping[str, str]) -> str | None:
    """Why `read_key` would fail, or None."""
    try:
        read_key(source, environ)
    except KeyUnavailable as error:
        return str(error)
    return None


def _content(file: str) -> str:
    try:
        return Path(file).read_text("utf-8")
    except OSError as error:
        raise KeyUnavailable(f"key file {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise KeyUnavailable(f"key file {file} is not text") from None
