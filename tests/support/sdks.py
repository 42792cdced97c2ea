"""The official SDKs, pointed at a running product."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import anthropic
import openai

from tests.support.stack import Stack


@dataclass(frozen=True, slots=True)
class Sdks:
    """One client of each, with the retries that they come with."""

    oai: openai.OpenAI
    claude: anthropic.Anthropic


@contextmanager
def connected(stack: Stack) -> Iterator[Sdks]:
    """Clients of a stack. They are costly to make (each reads the system's certificates), so share them."""
    with (
        openai.OpenAI(base_url=stack.base + "/v1", api_key="sk-client") as oai,
        anthropic.Anthropic(base_url=stack.base, api_key="sk-client") as claude,
    ):
        yield Sdks(oai, claude)
