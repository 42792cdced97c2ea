"""`recipes[]` and `entrypoints[]`: isolated policies, and the model names they are published under."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from router.config.model.base import Model, Name, Renamed, soon
from router.config.model.decisions import Decision
from router.config.model.projections import Projections
from router.config.model.signals import Signals


class Recipe(Model):
    """One isolated policy: its names mean nothing to other recipes."""

    name: Name = Field(description="Unique name of the recipe.")
    description: str | None = Field(None, description="For people.")
    strategy: Literal["priority", "confidence"] = Field("priority", description="What ranks matching decisions first.")
    signals: Signals | None = Field(None, description="Rules that read the request.")
    projections: Projections | None = Field(None, description="Arithmetic over signals.")
    decisions: list[Decision] = Field(default_factory=list, description="What to do with a request.")
    routing: Annotated[
        None, Renamed("its content stands directly in the recipe; `pointsman config migrate` moves it")
    ] = None


class Entrypoint(Model):
    """Model names that clients may ask for, and the recipe that answers."""

    api: Annotated[Literal["chat"], soon("systemone")] = Field("chat", description="API of the clients.")
    model_names: list[Name] = Field(min_length=1, description="Names that clients write in `model`.")
    recipe: Name = Field(description="The recipe that routes these requests.")
    default: bool = Field(False, description="Also takes requests that name no model.")
