"""A table for the terminal: how the candidates of a decision stood when one was picked by what was measured of them."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from router.acting.standing import Part
from router.explaining.candidates import why_picked
from router.explaining.explanation import Explanation


def candidates(explanation: Explanation) -> Table | None:
    """How the candidates stood; None where nothing was measured of them."""
    found = explanation.contestants
    if found is None:
        return None
    table = Table(title="Candidates", title_justify="left", title_style="bold", caption=why_picked(found))
    for name in ("candidate", "answers", "in flight", "errors", "factors", "score", ""):
        table.add_column(name, overflow="fold")
    for index, one in enumerate(found.all):
        mark = "[bold green]◀ picked[/]" if index == found.picked else ", ".join(one.exceeds)
        table.add_row(
            escape(one.model),
            str(one.asked) if not one.unmeasured else f"{one.asked}, not measured",
            str(one.in_flight),
            f"{one.error_rate:.1%}",
            ", ".join(_factor(name, part) for name, part in one.parts.items()),
            "" if one.score is None else f"{one.score:.3f}",
            mark,
        )
    return table


def _factor(name: str, part: Part) -> str:
    if part.value is None:
        return f"{name} unknown"
    comes_to = "" if part.comes_to is None else f" → {part.comes_to:.3f}"
    return f"{name} {part.value:.4g}{comes_to}" + (f" at {part.weight:.3g}" if part.weight not in (0.0, 1.0) else "")
