"""What is computed of signals, without asking any model: partitions, weighted sums and the bands of their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from router.questions import Predicate

ValueSource = Literal["binary", "confidence", "raw", "score"]


@dataclass(frozen=True, slots=True)
class ScoreInput:
    """One term of a weighted sum.

    `family` "projection": `source` "score" reads another score by name, "confidence" a mapping output's confidence.
    Any other family: `name` is the key of a rule, `key` one of its options or labels (None: the bare value).
    `match`/`miss` are the values of a binary input.
    """

    family: str
    name: str
    key: str | None
    weight: float
    source: ValueSource
    match: float
    miss: float


@dataclass(frozen=True, slots=True)
class Score:
    """A named weighted sum over signals and other scores."""

    name: str
    inputs: tuple[ScoreInput, ...]


@dataclass(frozen=True, slots=True)
class Output:
    """A named band of a score; decisions read it as `type: projection`."""

    name: str
    bounds: Predicate


@dataclass(frozen=True, slots=True)
class BandMapping:
    """Turns a score into outputs: the first that holds (`threshold_bands`) or all that hold (`multi_emit`)."""

    name: str
    source: str
    method: Literal["threshold_bands", "multi_emit"]
    slope: float
    outputs: tuple[Output, ...]


@dataclass(frozen=True, slots=True)
class Partition:
    """Rules of which at most one matches: the surest; `default` when none does.

    `members` and `default` are keys of rules. With `temperature`, the winner's confidence is its softmax among those
    that matched.
    """

    name: str
    members: tuple[str, ...]
    default: str
    temperature: float | None = None
