"""Which handler a request is for: whole paths, and paths whose last segment is a name."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

from .message import Handler, Request


class NotFound(Exception):
    """Nothing is served at that path."""


class NotAllowed(Exception):
    """The path is served, by other methods: `allowed`, in order."""

    def __init__(self, allowed: list[str]) -> None:
        super().__init__(", ".join(allowed))
        self.allowed = allowed


class Routes:
    """Handlers by path and method. `/models/{model}` fits any one segment there; whole paths come first.

    HEAD is answered wherever GET is.
    """

    def __init__(self) -> None:
        self._whole: dict[str, dict[str, Handler]] = {}
        self._open: dict[str, dict[str, Handler]] = {}
        self._paths: list[tuple[str, str]] = []

    def add(self, method: str, path: str, handler: Handler) -> None:
        """Serve a path."""
        parent, _, segment = path.rpartition("/")
        methods = self._open.setdefault(parent, {}) if segment[:1] == "{" else self._whole.setdefault(path, {})
        methods[method] = handler
        if method == "GET":
            methods["HEAD"] = handler
        self._paths.append((method, path))

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Method and path of each, as they were added."""
        return iter(self._paths)

    def lead(self, request: Request) -> None:
        """Give a request its handler, and its name where its route has one. Raises NotFound and NotAllowed."""
        path = request.path
        methods = self._whole.get(path)
        if methods is None:
            methods = self._whole.get(unquote(path)) if "%" in path else None
        if methods is None:
            parent, _, segment = path.rpartition("/")
            methods = self._open.get(parent) if segment else None
            request.name = unquote(segment)
        if methods is None:
            raise NotFound
        request.handler = methods.get(request.method)
        if request.handler is None:
            raise NotAllowed(sorted(methods))
