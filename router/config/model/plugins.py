"""`recipes[].decisions[].plugins[]`: what a selected decision does besides naming candidates."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from router.config.model.base import Model, Text

LATER_PLUGINS = (
    *("response_cache", "response-cache", "semantic-cache", "semantic_cache", "rag", "tools", "tool_selection"),
    *("response_guard", "response_jailbreak", "masking", "memory", "router_replay", "image_gen", "hallucination"),
)


class FastResponseSettings(Model):
    """The answer that is given instead of a model's."""

    message: Text = Field(description="What the client is told, word for word.")


class FastResponse(Model):
    """Answer at once, with status 200 and in the client's own format; no backend is asked."""

    type: Literal["fast_response"]
    configuration: FastResponseSettings = Field(description="What is answered.")


Plugin = Annotated[FastResponse, Field(discriminator="type")]
