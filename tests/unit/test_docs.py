"""What the pages tell operators to write is accepted: configurations validate, commands parse, links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from router.cli import parser
from router.config.load import load
from router.runtime.artifact import describe
from tests.support.warnings import unexpected

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
ENVIRONMENT = {"OPENAI_API_KEY": "unused", "ANTHROPIC_API_KEY": "unused"}

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)")


def blocks(language: str) -> list[tuple[str, str]]:
    """Fenced blocks of every page, with the page's name."""
    return [(page.name, text) for page in PAGES for kind, text in BLOCK.findall(page.read_text()) if kind == language]


CONFIGURATIONS = [(page, text) for page, text in blocks("yaml") if text.startswith("version:")]
COMMANDS = [
    (page, line)
    for page, text in blocks("console")
    for line in (raw.split("#")[0].strip() for raw in text.splitlines())
    if line.startswith("pointsman ")
]


def test_there_is_something_to_check() -> None:
    assert len(CONFIGURATIONS) >= 2
    assert len(COMMANDS) >= 4


@pytest.mark.parametrize(("page", "text"), CONFIGURATIONS)
def test_configurations_validate(page: str, text: str) -> None:
    assert unexpected(load(text, environ=ENVIRONMENT, describe=describe, serving=True).warnings) == []


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_commands_parse(page: str, line: str) -> None:
    words = [word for word in shlex.split(line) if word not in {">", "<"}]
    arguments = words[1 : words.index("pointsman.schema.json")] if "pointsman.schema.json" in words else words[1:]
    assert callable(parser().parse_args(arguments).run)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_links_lead_somewhere(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert not missing
