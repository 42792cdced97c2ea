"""The document at `/openapi.json` is true: what it says is answered as it says, and nothing it makes up breaks us."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from router.runtime.keys import Keys
from router.runtime.model import Model, load_model
from router.runtime.openapi import document
from router.runtime.server import Server
from tests.support.artifacts import build_tiny_artifact
from tests.support.runtime_client import listen


def no_fault_of_ours(context: Any, response: Any, case: Any) -> bool | None:
    """A client may give a deadline that has passed already, which is told as 504."""
    return None if response.status_code == 504 else not_a_server_error(context, response, case)


CHECKS = [
    no_fault_of_ours,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    unsupported_method,
]
SCHEMA = schemathesis.openapi.from_dict(document())


class Running:
    """A server on an event loop of its own thread."""

    def __init__(self, model: Model) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        server = Server()
        server.model = model
        self._listener = server.listener()
        self.url = asyncio.run_coroutine_threadsafe(listen(self._listener), self._loop).result(10)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._listener.stop(0.1), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    model = load_model(str(build_tiny_artifact(tmp_path_factory.mktemp("tiny"), presets=True)), "cpu")
    running = Running(model)
    yield running.url
    running.stop()
    model.close()


@SCHEMA.parametrize()
@settings(
    max_examples=10,
    deadline=None,
    database=None,
    phases=[Phase.generate],  # shrinking a large body takes minutes, and the failed request is shown anyway
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
def test_the_document_is_true(case: schemathesis.Case[Any], url: str) -> None:
    case.call_and_validate(base_url=url, checks=CHECKS, timeout=10)


def test_every_route_is_described_and_nothing_else() -> None:
    described = {
        (method.upper(), path)
        for path, item in document()["paths"].items()
        for method in item
        if method in ("get", "post")
    }
    assert described == set(Server().routes)


def test_a_runtime_with_keys_says_so() -> None:
    described: dict[str, Any] = document(keyed=bool(Keys(["k"])))
    assert described["security"] == [{"bearer": []}, {"header": []}]
    assert described["paths"]["/health"]["get"]["security"] == []
    assert {"401", "403"} <= set(described["paths"]["/v1/systemone"]["post"]["responses"])
    assert {"401", "403"}.isdisjoint(document()["paths"]["/v1/systemone"]["post"]["responses"])
