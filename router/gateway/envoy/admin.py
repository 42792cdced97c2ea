"""Envoy's admin interface: what it has taken, what it refused, and draining."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType

import aiohttp

from router.gateway.envoy.filenames import CLUSTERS, LISTENERS, file_for
from router.gateway.envoy.targets import Target

_STATS = (
    r"^(cluster_manager\.(cds\.(version_text|update_rejected)|warming_clusters)"
    r"|listener_manager\.(lds\.(version_text|update_rejected)|total_listeners_warming)"
    r"|http\..*\.rds\..*\.(version_text|update_rejected))$"
)
_RDS = re.compile(r"^http\..*?\.rds\.(?P<table>.+)\.(?P<stat>version_text|update_rejected)$")
_POLL_S = 0.02


class AdminError(Exception):
    """Envoy's admin interface did not answer, or answered with an error."""


class RejectedError(Exception):
    """Envoy refused an update. `file` names it, `reason` is Envoy's own when it tells one."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"Envoy refused {file}: {reason}")
        self.file = file
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Live:
    """What Envoy serves: versions and the count of refusals per file, and whether something still warms up.

    A file has several versions while a listener that drains still holds an old one.
    """

    versions: Mapping[str, frozenset[str]]
    refusals: Mapping[str, int]
    warming: bool


class Admin:
    """A client of one Envoy's admin interface. Use as `async with`, or close it."""

    def __init__(self, target: Target, timeout_s: float = 5) -> None:
        host = f"[{target.host}]" if ":" in target.host else target.host
        self._base = "http://envoy-admin" if target.path is not None else f"http://{host}:{target.port}"
        self._path = target.path
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Admin:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def ready(self) -> bool:
        """Whether Envoy has its configuration and takes requests."""
        try:
            await self._call("GET", "/ready")
        except AdminError:
            return False
        return True

    async def live(self) -> Live:
        """What Envoy serves now.

        Raises:
            AdminError: It cannot be asked.
        """
        return read_stats(await self._call("GET", "/stats", {"filter": _STATS}))

    async def active_requests(self) -> int:
        """Requests that clients have open, the admin interface's own not counted."""
        text = await self._call("GET", "/stats", {"filter": r"^http\..*\.downstream_rq_active$"})
        pairs = (line.rsplit(": ", 1) for line in text.splitlines() if ": " in line)
        return sum(int(value) for name, value in pairs if not name.startswith("http.admin."))

    async def drain(self) -> None:
        """Close the listeners to new connections and ask clients to leave kept ones."""
        await self._call("POST", "/drain_listeners", {"graceful": "", "skip_exit": ""})

    async def reasons(self) -> dict[str, str]:
        """Why the last update of a file was refused, for the files about which Envoy keeps that."""
        dump = json.loads(await self._call("GET", "/config_dump"))
        return read_reasons(dump)

    async def _call(self, method: str, path: str, query: Mapping[str, str] | None = None) -> str:
        if self._session is None:
            connector = aiohttp.UnixConnector(self._path) if self._path is not None else None
            self._session = aiohttp.ClientSession(connector=connector, timeout=self._timeout)
        try:
            async with self._session.request(method, self._base + path, params=query) as answer:
                text = await answer.text()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise AdminError(f"Envoy's admin interface does not answer: {type(error).__name__}") from None
        if answer.status != 200:
            raise AdminError(f"Envoy's admin interface answered {answer.status} to {path}")
        return text


def read_stats(text: str) -> Live:
    """Read the lines of `/stats` that tell about dynamic configuration."""
    versions: dict[str, frozenset[str]] = {}
    refusals: dict[str, int] = {}
    warming = False
    for line in text.splitlines():
        name, _, value = line.rpartition(": ")
        if name.endswith(("warming_clusters", "listeners_warming")):
            warming = warming or value != "0"
        elif name.endswith("version_text"):
            file = _file(name)
            versions[file] = versions.get(file, frozenset()) | {value.strip('"')}
        elif name.endswith("update_rejected"):
            file = _file(name)
            refusals[file] = max(refusals.get(file, 0), int(value))
    return Live(versions, refusals, warming)


def _file(stat: str) -> str:
    if stat.startswith("cluster_manager."):
        return CLUSTERS
    if stat.startswith("listener_manager."):
        return LISTENERS
    table = _RDS.match(stat)
    return file_for("routes", table["table"]) if table else stat


def read_reasons(dump: Mapping[str, object]) -> dict[str, str]:
    """Read refusals out of `/config_dump`."""
    found: dict[str, str] = {}
    for section, keys, file in (
        ("ClustersConfigDump", ("dynamic_active_clusters", "dynamic_warming_clusters"), CLUSTERS),
        ("ListenersConfigDump", ("dynamic_listeners",), LISTENERS),
        ("RoutesConfigDump", ("dynamic_route_configs",), None),
    ):
        for config in _list(dump, "configs"):
            if not str(config.get("@type", "")).endswith(section):
                continue
            for entry in (one for key in keys for one in _list(config, key)):
                state = entry.get("error_state")
                if isinstance(state, Mapping) and state.get("details"):
                    found[file or _table_file(entry)] = str(state["details"])
    return found


def _list(value: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    inner = value.get(key)
    return [one for one in inner if isinstance(one, Mapping)] if isinstance(inner, list) else []


def _table_file(entry: Mapping[str, object]) -> str:
    config = entry.get("route_config")
    name = config.get("name") if isinstance(config, Mapping) else None
    return file_for("routes", str(name)) if name else "routes"


async def wait_live(admin: Admin, versions: Mapping[str, str], timeout_s: float, before: Live | None = None) -> None:
    """Wait until Envoy serves these versions of its files, warmed up.

    Files of keys are left out: Envoy does not tell their versions. `before` is what was live before the files were
    written; without it, refusals count from the first look on.

    Raises:
        RejectedError: Envoy refused one of them and goes on with what it had.
        AdminError: Envoy cannot be asked, or is not done in time.
    """
    wanted = {file: version for file, version in versions.items() if not file.startswith("secret.")}
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while True:
        now = await admin.live()
        before = before or now
        late = [file for file, version in wanted.items() if version not in now.versions.get(file, ())]
        if not late and not now.warming:
            return
        for file in late:
            if now.refusals.get(file, 0) > before.refusals.get(file, 0):
                reasons = await admin.reasons()
                raise RejectedError(file, reasons.get(file, "its log has the reason"))
        if loop.time() >= deadline:
            what = ", ".join(late) or "clusters or listeners that warm up"
            raise AdminError(f"Envoy did not take the update within {timeout_s:g} s: {what}")
        await asyncio.sleep(_POLL_S)
