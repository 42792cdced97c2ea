"""Warnings that pages and examples may give: they use the embedded model, whose card calls its answers weak."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from router.config.problems import Problem


def unexpected(warnings: Iterable[Problem]) -> Sequence[Problem]:
    """The warnings but those that the embedded model's own card asks for."""
    return [warning for warning in warnings if "calls its answers" not in warning.message]
