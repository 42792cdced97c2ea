"""How a benchmark starts a module of this repository."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def module(name: str, *arguments: str) -> Sequence[str]:
    """The command that runs a module with this interpreter."""
    return [sys.executable, "-m", name, *arguments]
