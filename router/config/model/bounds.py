"""Bounds on numbers, as rules, conditions and projections write them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from router.config.model.base import Model


class Bounds(Model):
    """Bounds on a number; all that are written must hold."""

    gt: float | None = Field(None, description="Greater than.")
    gte: float | None = Field(None, description="Greater than or equal.")
    lt: float | None = Field(None, description="Less than.")
    lte: float | None = Field(None, description="Less than or equal.")


Probability = Annotated[float, Field(ge=0, le=1)]
