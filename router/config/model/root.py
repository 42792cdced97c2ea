"""The whole document."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from router.config.model.base import Model, NotYet
from router.config.model.globals import Global
from router.config.model.listeners import Listener
from router.config.model.providers import Providers
from router.config.model.recipes import Entrypoint, Recipe

VERSION = "v0.5"


class Root(Model):
    """A Pointsman configuration, dialect v0.5."""

    model_config = ConfigDict(title="Pointsman configuration", populate_by_name=False)

    version: Literal["v0.5"] = Field(description="The dialect.")
    listeners: list[Listener] = Field(default_factory=list, description="Where Envoy takes the clients' requests.")
    providers: Providers | None = Field(None, description="The LLM backends.")
    recipes: list[Recipe] = Field(default_factory=list, description="Isolated routing policies.")
    entrypoints: list[Entrypoint] = Field(default_factory=list, description="Model names that clients may ask for.")
    global_: Global | None = Field(None, alias="global", description="The router itself and its decision models.")
    evaluation: NotYet = None
