"""Accuracies as pages state them: "45 of 48"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.support.stack import ROOT

FAMILIES_PAGE = ROOT / "docs" / "learned-families.md"
_MEASURED = re.compile(r"\*\*(\d+) of (\d+)\*\*")


@dataclass(frozen=True, slots=True)
class Measured:
    """How many of how many were right."""

    right: int
    of: int

    @property
    def slack(self) -> int:
        """By how many another machine may differ: sums of floats are not the same on every processor."""
        return max(1, self.of // 25)


def measured(page: Path) -> Measured:
    """The first accuracy that a page states in bold."""
    found = _MEASURED.search(page.read_text("utf-8"))
    assert found is not None, f"{page} does not say how often it is right"
    return Measured(int(found[1]), int(found[2]))


def families_measured() -> dict[str, Measured]:
    """The accuracies of the learned families: rows of the page's table, by the family's preset."""
    rows = re.findall(r"^\| `(\w+)` \|.*?\*\*(\d+) of (\d+)\*\*", FAMILIES_PAGE.read_text("utf-8"), re.MULTILINE)
    return {family: Measured(int(right), int(of)) for family, right, of in rows}
