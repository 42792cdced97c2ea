"""One running product for all end-to-end tests that do not break it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stack import Stack, running

CONFIG = (Path(__file__).parent / "routes.yaml").read_text()


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The product on tests/e2e/routes.yaml. Shared: a test must leave it as it found it."""
    with running(tmp_path_factory.mktemp("stack"), CONFIG) as started:
        yield started


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything below this folder drives a real Envoy."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("e2e")
