"""What every step of the compiler shares: reporting at a place, and names that refer to something."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, Generic, TypeVar

from router.config.deployments import KeySource
from router.config.document import Block, Document, Items
from router.config.model.base import Model
from router.config.model.bounds import Bounds
from router.config.problems import Path, nearest
from router.config.scalars import NULL
from router.questions import Capabilities, Predicate

T = TypeVar("T")

Describe = Callable[[str], Capabilities | None]
Absent = Callable[[KeySource], str | None]
"""Why a key cannot be had here, in words without the key; None when it can."""

PROBABILITY = (0.0, 1.0)
ANY_NUMBER = (float("-inf"), float("inf"))
_MAX_LISTED = 12


@dataclass(slots=True)
class Context:
    """One compilation: the document, what could not be read of it, and how to learn what an artifact can do."""

    document: Document
    cut: frozenset[Path]
    describe: Describe
    folder: FilePath | None
    absent: Absent | None = None

    def error(self, path: Path, message: str, hint: str | None = None, *, key: bool = False) -> None:
        """Report a mistake."""
        self.document.problem(path, message, hint, key=key)

    def warn(self, path: Path, message: str, hint: str | None = None, *, key: bool = False) -> None:
        """Report something that works and is probably not meant."""
        self.document.problem(path, message, hint, severity="warning", key=key)

    def shown(self, value: object, path: Path | None = None) -> str:
        """A value as messages may show it."""
        return self.document.shown(value, path)

    def is_cut(self, path: Path) -> bool:
        """Whether something at or under a path was refused, so that its absence is no further mistake."""
        return any(known[: len(path)] == path for known in self.cut)

    def is_refused(self, path: Path) -> bool:
        """Whether the whole of a path, or of something it stands in, was refused."""
        return any(path[: len(known)] == known for known in self.cut)

    def is_unset(self, path: Path) -> bool:
        """Whether the value stands for an environment variable that is not set."""
        return path in self.document.unset

    def need(self, model: Model, key: str) -> bool:
        """Whether a key that the model leaves optional is there; reports its absence unless it was refused.

        Such keys are required, but a mistake in one must not hide the mistakes in its neighbours.
        """
        if getattr(model, key) is not None:
            return True
        if not self.is_cut(model.at(key)):
            self.error(model.at(), f'missing key "{key}"', key=True)
        return False

    def predicate(self, bounds: Bounds, limits: tuple[float, float], *, empty: bool = False) -> Predicate | None:
        """The bounds as a predicate; None after reporting why they make no sense.

        `limits` are the smallest and largest value that can occur. Without `empty`, at least one bound is needed.
        """
        written = {key: value for key in ("gt", "gte", "lt", "lte") if (value := getattr(bounds, key)) is not None}
        if not written and not empty and not self.is_cut(bounds.at()):
            self.error(bounds.at(), "needs at least one of gt, gte, lt, lte", key=True)
        good = bool(written) or empty
        low, high = limits
        for first, second in (("gt", "gte"), ("lt", "lte")):
            if first in written and second in written:
                self.error(bounds.at(first), f"{first} and {second} cannot both be given", "keep one of them")
                good = False
        for key, value in written.items():
            if not low <= value <= high:
                self.error(bounds.at(key), f"must be from {low:g} to {high:g}, not {self.shown(value, bounds.at(key))}")
                good = False
        if good and not _possible(written, limits):
            self.error(bounds.at(), "no value can meet these bounds", key=True)
            good = False
        return Predicate(**written) if good else None


def _possible(written: Mapping[str, float], limits: tuple[float, float]) -> bool:
    low = max(limits[0], written.get("gt", limits[0]), written.get("gte", limits[0]))
    high = min(limits[1], written.get("lt", limits[1]), written.get("lte", limits[1]))
    open_ended = written.get("gt") == low or written.get("lt") == high
    return low < high or (low == high and not open_ended)


@dataclass(slots=True)
class Names(Generic[T]):
    """The things that a name can refer to.

    `ghosts` are names that the document declares but whose declaration was refused; `open` says that declarations
    exist whose names could not even be read. References to either are not reported again.
    """

    what: str
    known: dict[str, T] = field(default_factory=dict)
    ghosts: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)
    open: bool = False

    def declare(self, context: Context, path: Path, name: str, thing: T | None) -> None:
        """Add a declaration; a second one of the same name is a mistake. None: its declaration is refused."""
        if name in self.declared:
            context.error(path, f"duplicate {self.what} name {context.shown(name, path)}")
        self.declared.add(name)
        if thing is None:
            self.ghosts.add(name)
        else:
            self.known.setdefault(name, thing)

    def foresee(self, context: Context, *path: str | int) -> None:
        """Learn the names that the document declares in a list, whether or not they could be read."""
        for name in _declared(context.document.value, path):
            if name is None:
                self.open = True
            else:
                self.ghosts.add(name)

    def find(self, context: Context, name: str, path: Path) -> T | None:
        """What a reference names; None after reporting it, unless its absence is a follow-up of another mistake."""
        if name in self.known:
            return self.known[name]
        if name in self.ghosts or self.open or context.is_unset(path):
            return None
        context.error(path, f"no {self.what} is named {context.shown(name, path)}", self.suggestion(context, name))
        return None

    def suggestion(self, context: Context, name: str) -> str:
        """The nearest name, or the list of all."""
        names = sorted({*self.known, *self.ghosts})
        guess = nearest(name, names)
        if guess:
            return f"did you mean {context.shown(guess)}?"
        if not names:
            return f"there is no {self.what} at all"
        listed = ", ".join(context.shown(known).strip('"') for known in names[:_MAX_LISTED])
        return f"known: {listed}" + (", ..." if len(names) > _MAX_LISTED else "")


def _declared(value: Any, path: tuple[str | int, ...]) -> Iterator[str | None]:
    for part in path:
        if isinstance(value, Block):
            value = value.get(str(part))
        elif isinstance(value, Items) and isinstance(part, int) and part < len(value):
            value = value[part]
        if value is None:
            return
        if value is NULL or not isinstance(value, Block | Items):
            yield None
            return
    for item in value if isinstance(value, Items) else (None,):
        name = item.get("name") if isinstance(item, Block) else None
        yield name if isinstance(name, str) else None


def deprecated(context: Context, path: Path, *, key: bool = False) -> None:
    """Warn about the older name of the systemone family."""
    hint = "write systemone; `pointsman config migrate` does it"
    context.warn(path, '"decision" is the older name of "systemone"', hint, key=key)
