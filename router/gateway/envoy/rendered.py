"""A rendered configuration: plain data, free of Envoy's types."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class Rendered:
    """`bootstrap` is what Envoy starts from; `files` the resource files beside it (empty: all is in the bootstrap).

    Files are in the order in which they must be written: what others point at comes first.
    """

    bootstrap: Mapping[str, Any]
    files: Mapping[str, Sequence[Mapping[str, Any]]]

    def yaml(self) -> str:
        """The bootstrap for people to read; Envoy takes it by the file ending `.yaml`."""
        return yaml.safe_dump(dict(self.bootstrap), sort_keys=False, width=120, allow_unicode=True)

    def version(self, file: str) -> str:
        """A hash of a file's resources, the version that Envoy reports once it has taken them."""
        return hashlib.sha256(_encode(self.files[file])).hexdigest()[:16]

    def versions(self) -> dict[str, str]:
        """The version of each file."""
        return {file: self.version(file) for file in self.files}

    def content(self, file: str) -> bytes:
        """A resource file as Envoy reads it."""
        return _encode({"version_info": self.version(file), "resources": self.files[file]}, indent=1) + b"\n"


def _encode(value: object, indent: int | None = None) -> bytes:
    return json.dumps(value, indent=indent, sort_keys=indent is None, ensure_ascii=False).encode()
