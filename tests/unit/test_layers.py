"""Imports point one way: what is above may use what is below, never the other way round."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "router"

LEAVES = {"questions", "observe", "__version__"}
"""What every part may use. They use nothing of ours."""
ALLOWED = {
    "questions": set(),
    "observe": set(),
    "runtime": set(),  # with the leaves: a process of its own, which others can run without a router
    "config": set(),
    "wire": {"config"},
    "verdict": {"wire"},
    "signals": {"wire", "config"},
    "scan": {"wire", "config"},
    "deciding": {"signals", "scan", "wire", "config"},
    "asking": {"signals", "scan", "wire", "config"},
    "acting": {"deciding", "asking", "signals", "scan", "wire", "config", "verdict"},
    "explaining": {"verdict", "acting", "deciding", "asking", "signals", "scan", "wire", "config"},
    "needed": {"deciding", "asking", "signals", "scan", "wire", "config"},
    "generation": {"needed", "acting", "deciding", "asking", "signals", "scan", "wire", "config"},
    "guarding": {"generation", "deciding", "asking", "signals", "scan", "wire", "config"},
    "judging": {
        "guarding",
        "generation",
        "explaining",
        "acting",
        "deciding",
        "asking",
        "signals",
        "scan",
        "wire",
        "config",
    },
    "incoming": {
        "judging",
        "generation",
        "explaining",
        "acting",
        "wire",
    },
    "replying": {
        "incoming",
        "explaining",
        "acting",
        "wire",
        "verdict",
    },
    "pipeline": {
        "incoming",
        "replying",
        "judging",
        "guarding",
        "needed",
        "generation",
        "explaining",
        "acting",
        "deciding",
        "asking",
        "signals",
        "scan",
        "wire",
        "config",
        "verdict",
    },
    "gateway": {"verdict", "wire", "config"},  # reaches the pipeline by the handler that it is given
    "admin": {
        "pipeline",
        "generation",
        "explaining",
        "acting",
        "verdict",
        "deciding",
        "asking",
        "signals",
        "scan",
        "wire",
        "config",
    },
    "serving": {"*"},
    "cli": {"*"},
}
TOPMOST = {"cli", "serving"}


def part_of(module: str) -> str | None:
    """The part of the product that a module belongs to; None for other people's."""
    words = module.split(".")
    return words[1] if words[0] == "router" and len(words) > 1 else None


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and part of everything of ours that a module imports, inside functions too."""
    package = ["router", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            names = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if (part := part_of(name)) is not None:
                yield node.lineno, part


PARTS = sorted({entry.stem for entry in PACKAGE.iterdir() if entry.suffix == ".py" or (entry / "__init__.py").exists()})


def test_every_part_has_a_place() -> None:
    assert set(PARTS) - {"__init__", "py"} <= ALLOWED.keys(), "add new parts of the product to the picture above"


@pytest.mark.parametrize("part", sorted(ALLOWED))
def test_imports_point_one_way(part: str) -> None:
    files = sorted((PACKAGE / part).rglob("*.py")) if (PACKAGE / part).is_dir() else [PACKAGE / f"{part}.py"]
    allowed = ALLOWED[part] | LEAVES | {part}
    wrong = [
        f"{path.relative_to(PACKAGE.parent)}:{line} imports router.{used}"
        for path in files
        for line, used in imports(path)
        if used not in allowed and not ("*" in allowed and (part == "cli" or used != "cli"))
    ]
    assert not wrong, "\n".join(wrong)


def test_nothing_below_knows_the_top() -> None:
    users = {
        part
        for part in ALLOWED.keys() - TOPMOST
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0].removesuffix(".py") == part
        for _, used in imports(path)
        if used in TOPMOST
    }
    assert not users
