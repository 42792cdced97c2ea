"""Reading a configuration: text to `Plan`, with every mistake at once.

ConfigError         the configuration cannot be used; `problems` says why
OSError             the file cannot be read
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from router.config.compiler import compile_plan
from router.config.compiler.context import Describe
from router.config.credentials import why_absent
from router.config.document import Document, Unreadable, parse
from router.config.model.root import VERSION
from router.config.plan import Plan
from router.config.problems import ConfigError, Place, Problem, in_file_order, nearest
from router.config.shape import read

OLD_VERSIONS = frozenset({"v0.1", "v0.2", "v0.3", "v0.4"})


@dataclass(frozen=True, slots=True)
class Loaded:
    """A usable configuration."""

    plan: Plan
    warnings: tuple[Problem, ...]


def load(
    source: Path | str,
    *,
    environ: Mapping[str, str],
    describe: Describe,
    serving: bool,
    file: str | None = None,
    folder: Path | None = None,
) -> Loaded:
    """Read a file (`Path`) or a text (`str`; `file` is what messages call it, `folder` where its relative paths start).

    `describe` tells what the model of an artifact can be asked: it is called once for each artifact that a rule asks,
    returns None when that cannot be known, and whatever it raises becomes an error at the artifact's line. A reference
    to an environment variable that is not set is an error when `serving`, else a warning; then what depends on it is
    missing from the plan or holds the reference's own text. A key of a decision model that cannot be had is a warning
    unless `serving`: then whoever connects to the model needs it and says so.
    Raises `ConfigError` with all problems, and OSError when a file cannot be read.
    """
    document = open_document(source, environ=environ, file=file)
    folder = source.parent if isinstance(source, Path) else folder
    if serving:
        document.problems = [_as_error(problem) for problem in document.problems]
    if not _is_old(document):
        _check_version(document)
        root, cut = read(document)
        if root is not None:
            absent = None if serving else functools.partial(why_absent, environ=environ)
            plan = compile_plan(document, root, cut, describe=describe, folder=folder, absent=absent)
            if not _has_errors(document):
                return Loaded(plan, in_file_order(document.problems))
    raise ConfigError(document.problems)


def open_document(source: Path | str, *, environ: Mapping[str, str], file: str | None = None) -> Document:
    """Parse without reading any meaning. Raises `ConfigError` when the text is not YAML, and OSError."""
    name = file or (str(source) if isinstance(source, Path) else "config.yaml")
    try:
        return parse(_text(source) if isinstance(source, Path) else source, file=name, environ=environ)
    except Unreadable as error:
        place = error.place
        problem = Problem("error", name, place.line, place.column, "", error.message, error.hint)
        raise ConfigError([problem]) from None


def _text(path: Path) -> str:
    data = path.read_bytes()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        place = Place(before.count(b"\n") + 1, len(before) - before.rfind(b"\n"))
        raise Unreadable(place, "the file is not UTF-8 text", "save it as UTF-8") from None


def _is_old(document: Document) -> bool:
    """Refuse the shape of older dialects, whose every other line would be a mistake in this one."""
    version = document.value.get("version")
    hint = f"`pointsman config migrate {document.file}` turns it into {VERSION}"
    if "routing" in document.value:
        message = "a top-level routing belongs to older dialects; a recipe holds its content now"
        document.problem(("routing",), message, hint, key=True)
    if isinstance(version, str) and version in OLD_VERSIONS:
        document.problem(("version",), f"the dialect {version} is not served any more", hint)
    return "routing" in document.value or (isinstance(version, str) and version in OLD_VERSIONS)


def _check_version(document: Document) -> None:
    version = document.value.get("version")
    path = ("version",)
    if version == VERSION:
        return
    if "version" not in document.value:
        guess = nearest("version", document.value)
        hint = f'did you mean "version" instead of "{guess}"?' if guess else f"start with `version: {VERSION}`"
        document.problem((), 'missing key "version"', hint)
    elif path not in document.unset:
        document.problem(path, f"the dialect {document.shown(version, path)} is not known", f"write version: {VERSION}")
    document.value["version"] = VERSION


def _as_error(problem: Problem) -> Problem:
    """While serving, what only warns before a document has a meaning (a variable that is not set) is an error."""
    return dataclasses.replace(problem, severity="error")


def _has_errors(document: Document) -> bool:
    return any(problem.severity == "error" for problem in document.problems)
