"""Plain tables for terminals and logs."""

from __future__ import annotations

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: bool = False) -> str:
    """Rows as lines with aligned columns; the last column is as wide as it likes. `right` aligns to the right."""
    lines = [*([head] if head else []), *rows]
    if not lines:
        return ""
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    align = str.rjust if right else str.ljust
    return "".join(
        "  ".join(align(cell, width) for cell, width in zip(line, widths, strict=True)).rstrip() + "\n"
        for line in lines
    )
