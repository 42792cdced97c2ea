"""The read-me of an artifact: what it is for, what it must not be used for, and how good it was measured to be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_TEXT: Final = """\
# builtin-mini {version}: the embedded default decision model

One MiniLM-L6 encoder (all-MiniLM-L6-v2, Apache-2.0; its upper half fine-tuned) with a head for every preset, a head
per token for personal data, and heads over the vectors of two texts. All answers about a state come from one
forward pass. Graphs, tensor shapes, head slices, labels, temperatures, thresholds by length and golden answers:
`decision.json`. `pooled` is a unit vector; pair heads take `u = pooled(a)`, `v = pooled(b)`. The weights are int8,
folded to fp32 at load. `tokenizer.json` has truncation and padding baked in: switch both off after loading.

`make model` makes it again from packages alone, `make model-eval` prints the tables below. What it was trained on,
with versions and licences: `train/SOURCES.md`.

## What it must not be used for

- Refusing traffic by one of these alone; they measured weakly on text of others, or nobody could measure them:
  {weak}. Of these no labelled text of others was found, so nobody knows how good they are outside of this project's
  own wording: {unmeasured}.
- Refusing by questions in your own words: it compares topics. Negation, degree and intent are near chance. `choice`
  between subjects is fair; `noul`, `score` and `set` are weak (`pointsman validate` warns).
- Judging what is true. `answer_check` and `relevance` see whether two texts are about the same thing.
- Guarding languages other than English alone.
- Ranking tools (`tool_rank`): there is no head for it, for want of labelled text. Bind a model that has one.

## Quality, measured

Thresholds and temperatures were fitted on texts that were neither trained on nor are in these sets. `recall` and
`flagged` are at the shipped threshold for the text's length; `ece` is the expected calibration error. The sets are
not blind tests: what their author had seen of them is said in `train/SOURCES.md`. Size and speed, and what two public
suites say, are in `docs/benchmarks.md` ("model").

{tables}"""


def read_me(version: str, weak: Sequence[str], unmeasured: Sequence[str], tables: str) -> str:
    """The text in Markdown."""
    return _TEXT.format(version=version, weak=_listed(weak), unmeasured=_listed(unmeasured), tables=tables)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"
