"""Sources: each is named with its licence and digest, in code and in words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from train.base import ENCODER, GUARD
from train.data.packages import Package
from train.data.sources import PACKAGES

LICENCES = {"MIT", "Apache-2.0", "BSD-3-Clause", "LicenseRef-WordNet-3.0", "MIT OR Apache-2.0"}
SHARED_ALIKE = {"MIT AND CC-BY-SA-3.0-US"}
"""Good for a test, whose texts nothing is made of."""
PAGE = Path("train/SOURCES.md").read_text("utf-8")


@pytest.mark.parametrize("package", [*PACKAGES, ENCODER, GUARD], ids=lambda package: package.name)
def test_a_package_has_a_licence_that_allows_it_and_a_digest(package: Package) -> None:
    assert package.licence in (LICENCES | SHARED_ALIKE if package.held_out else LICENCES)
    assert re.fullmatch(r"[0-9a-f]{64}", package.sha256)
    assert package.version in package.file
    assert package.gives


@pytest.mark.parametrize("package", [*PACKAGES, ENCODER, GUARD], ids=lambda package: package.name)
def test_the_page_names_it_with_version_licence_and_use(package: Package) -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{package.name}` "))
    assert package.version in row
    assert package.licence.removeprefix("LicenseRef-") in row
    assert ("evaluation only" in row) is package.held_out


def test_no_package_is_both_trained_on_and_tested_with() -> None:
    names = [package.name for package in PACKAGES]
    assert len(names) == len(set(names))


def test_held_out_packages_are_read_by_no_module_of_training_data() -> None:
    held = [package.name.upper().replace("-", "_").split("_")[0] for package in PACKAGES if package.held_out]
    for path in Path("train/data").glob("*.py"):
        if path.name == "sources.py":
            continue
        imported = " ".join(re.findall(r"from train\.data\.sources import (.*)", path.read_text("utf-8")))
        assert not {name for name in held if re.search(rf"\b{name}", imported)}, path.name
