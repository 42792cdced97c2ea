"""One running product for all end-to-end tests that do not break it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sdks import Sdks, connected
from tests.support.stack import Stack, running

CONFIG = (Path(__file__).parent / "routes.yaml").read_text()


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The product on tests/e2e/routes.yaml. Shared: a test must leave it as it found it."""
    with running(tmp_path_factory.mktemp("stack"), CONFIG) as started:
        yield started


@pytest.fixture(scope="session")
def streamed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A second one, with request bodies in full duplex and logs as wordy as they get."""
    config = CONFIG + "  router: {streamed_body: {enabled: true}}\n"
    with running(tmp_path_factory.mktemp("streamed"), config, arguments=("--log-level", "debug")) as started:
        yield started


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A third one, on grpcio's transport."""
    with running(tmp_path_factory.mktemp("reference"), CONFIG, arguments=("--transport", "grpcio")) as started:
        yield started


@pytest.fixture(scope="session")
def sdks(stack: Stack) -> Iterator[Sdks]:
    """The official SDKs' clients of `stack`."""
    with connected(stack) as clients:
        yield clients


@pytest.fixture(params=["stack", "streamed"])
def either(request: pytest.FixtureRequest) -> Stack:
    """Each of the two: buffered bodies and full duplex must come to the same."""
    started = request.getfixturevalue(request.param)
    assert isinstance(started, Stack)
    return started


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything below this folder drives a real Envoy."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("e2e")
