"""Keeping Envoy's resource files in step with the plan that serves."""

from __future__ import annotations

import asyncio
from pathlib import Path

from router.config.plan import Plan
from router.gateway.envoy import Rendered, Target, render
from router.gateway.envoy.admin import Admin
from router.gateway.envoy.files import remove_stale, update, write_file, write_xds

BOOTSTRAP = "bootstrap.yaml"
RESOURCES = "xds"
REVISION = "revision"
ADMIN_SOCKET = "admin.sock"


class EnvoyFiles:
    """One Envoy's files in `folder`: its bootstrap, and the resource files that it follows."""

    def __init__(self, folder: Path, admin: Target | None = None) -> None:
        self.folder = folder.absolute()
        self.admin = admin or Target(path=str(self.folder / ADMIN_SOCKET))

    @property
    def bootstrap(self) -> Path:
        """What Envoy starts from."""
        return self.folder / BOOTSTRAP

    def write(self, plan: Plan, *, afresh: bool = False) -> dict[str, str]:
        """Write everything for an Envoy that is not serving yet. Returns the version of each file.

        What is there already for this plan is left alone, and then nothing is returned, unless `afresh`: another
        release may have written it. Raises OSError, and ValueError for what cannot be rendered.
        """
        if not afresh and self._revision() == plan.revision:
            return {}
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        rendered = self._render(plan, None)
        write_xds(self.folder / RESOURCES, rendered)
        if afresh:
            remove_stale(self.folder / RESOURCES, rendered)
        write_file(self.bootstrap, rendered.yaml().encode())
        self._wrote(plan)
        return rendered.versions()

    async def publish(self, plan: Plan, previous: Plan | None = None) -> None:
        """Have the running Envoy serve `plan`, and with `previous` also what that one had.

        Raises RejectedError when Envoy refuses (it goes on as before) and AdminError when it does not answer.
        """
        rendered = await asyncio.to_thread(self._render, plan, previous)
        async with Admin(self.admin) as admin:
            await update(self.folder / RESOURCES, rendered, admin)
        self._wrote(plan)
        if previous is None:
            remove_stale(self.folder / RESOURCES, rendered)

    @staticmethod
    def warm() -> None:
        """Load what rendering needs (0.7 s), so that the first reload does not wait for it."""
        from router.gateway.envoy import rendering  # noqa: F401, PLC0415 - slow to import

    def _render(self, plan: Plan, previous: Plan | None) -> Rendered:
        return render(plan, admin=self.admin, previous=previous, xds_dir=self.folder / RESOURCES)

    def _revision(self) -> str | None:
        try:
            return (self.folder / REVISION).read_text()
        except FileNotFoundError:
            return None

    def _wrote(self, plan: Plan) -> None:
        write_file(self.folder / REVISION, plan.revision.encode())
