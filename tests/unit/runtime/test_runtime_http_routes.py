from __future__ import annotations

import pytest

from router.runtime.http.message import Request, Response
from router.runtime.http.routes import NotAllowed, NotFound, Routes


async def listed(_: Request) -> Response:
    return Response(200)


async def named(_: Request) -> Response:
    return Response(201)


async def asked(_: Request) -> Response:
    return Response(202)


@pytest.fixture
def routes() -> Routes:
    routes = Routes()
    routes.add("GET", "/models", listed)
    routes.add("GET", "/models/{model}", named)
    routes.add("POST", "/models/ask", asked)
    return routes


@pytest.mark.parametrize(
    ("method", "target", "handler", "name"),
    [
        ("GET", "/models", listed, ""),
        ("HEAD", "/models?x", listed, ""),
        ("GET", "/%6dodels", listed, ""),
        ("GET", "/models/one", named, "one"),
        ("GET", "/models/own%2Fname%20x", named, "own/name x"),
        ("POST", "/models/ask", asked, ""),
        ("POST", "http://host/models/ask", asked, ""),
    ],
)
def test_a_request_finds_its_handler(routes: Routes, method: str, target: str, handler: object, name: str) -> None:
    request = Request(method, target, {})
    routes.lead(request)
    assert (request.handler, request.name) == (handler, name)


@pytest.mark.parametrize("target", ["/", "", "*", "/model", "/models/", "/models/a/b", "/models/ask/", "/Models"])
def test_other_paths_are_not_found(routes: Routes, target: str) -> None:
    with pytest.raises(NotFound):
        routes.lead(Request("GET", target, {}))


@pytest.mark.parametrize(
    ("method", "target", "allowed"),
    [("POST", "/models", ["GET", "HEAD"]), ("GET", "/models/ask", ["POST"]), ("PUT", "/models/x", ["GET", "HEAD"])],
)
def test_other_methods_hear_what_is_allowed(routes: Routes, method: str, target: str, allowed: list[str]) -> None:
    with pytest.raises(NotAllowed) as caught:
        routes.lead(Request(method, target, {}))
    assert caught.value.allowed == allowed


def test_all_of_them_are_told(routes: Routes) -> None:
    assert list(routes) == [("GET", "/models"), ("GET", "/models/{model}"), ("POST", "/models/ask")]
