"""`global.services` beyond addresses: the management API."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from router.config.model.base import Model, NotYet, Text
from router.config.model.providers import EnvName
from router.config.services import Role


class ManagementToken(Model):
    """A bearer token of the management API. The token itself never stands here."""

    env: EnvName | None = Field(None, description="Environment variable that holds the token.")
    file: Text | None = Field(None, description="File that holds the token.")
    roles: list[Role] = Field(
        min_length=1,
        description="read: previews and records. detail: recorded text, too. write: what changes something.",
    )


class ManagementAuth(Model):
    """Who may use the management API."""

    mode: Literal["bearer"] = Field("bearer", description="`Authorization: Bearer TOKEN`.")
    tokens: list[ManagementToken] = Field(min_length=1, description="The tokens that are accepted.")


class ManagementApi(Model):
    """The API on the management port. Health and readiness are always public."""

    auth: ManagementAuth | None = Field(None, description="Needed on any other address than a loopback one.")
    roles: NotYet = None
