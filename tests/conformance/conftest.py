from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.runtime_process import Runtime, serving

KEY = "conformance-key"


@pytest.fixture(scope="session")
def runtimes() -> Iterator[tuple[Runtime, Runtime]]:
    """The embedded model served to everybody on this machine, and to who has the key; they load side by side."""
    variable = "CONFORMANCE_RUNTIME_KEY"
    with (
        serving("--artifact", "builtin", "--alias", "house-model") as plain,
        serving("--artifact", "builtin", "--api-key-env", variable, environ={variable: KEY}) as locked,
    ):
        plain.wait_ready()
        locked.wait_ready()
        yield plain, locked


@pytest.fixture(scope="session")
def url(runtimes: tuple[Runtime, Runtime]) -> str:
    """Where everybody is answered."""
    return runtimes[0].url


@pytest.fixture(scope="session")
def locked_url(runtimes: tuple[Runtime, Runtime]) -> str:
    """Where `key` is needed."""
    return runtimes[1].url


@pytest.fixture(scope="session")
def key() -> str:
    return KEY
