"""Where Envoy finds a dynamic resource: a watched file, or the bootstrap itself."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from router.gateway.envoy import proto as pb
from router.gateway.envoy.filenames import file_for


@dataclass(frozen=True, slots=True)
class Sources:
    """`folder` holds the resource files; None when everything stands in the bootstrap."""

    folder: Path | None

    def watched(self, file: str) -> pb.core.ConfigSource | None:
        """Follow one file of the folder, by renames into it and by symlink swaps; None without a folder."""
        if self.folder is None:
            return None
        folder = os.path.abspath(self.folder)
        return pb.core.ConfigSource(
            resource_api_version=pb.core.ApiVersion.V3,
            path_config_source=pb.core.PathConfigSource(
                path=os.path.join(folder, file), watched_directory=pb.core.WatchedDirectory(path=folder)
            ),
        )

    def secret(self, name: str) -> pb.core.ConfigSource | None:
        """The source of a key; None means the bootstrap's list of secrets."""
        return self.watched(file_for("secret", name))

    def routes(self, name: str) -> pb.core.ConfigSource | None:
        """The source of a listener's routes."""
        return self.watched(file_for("routes", name))
