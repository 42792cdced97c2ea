"""Names of the resource files that Envoy follows."""

from __future__ import annotations

import hashlib
import re

CLUSTERS = "clusters.json"
LISTENERS = "listeners.json"


def file_for(kind: str, name: str) -> str:
    """The file of a resource that Envoy subscribes to by name: readable, safe in a path, unique."""
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{kind}.{re.sub(r'[^A-Za-z0-9-]+', '_', name).strip('_')[:60]}.{digest}.json"
