"""The official SDKs with the retries that they come with, beside others who fill the model's queue."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import anthropic
import openai

from bench.overload.corpus import unlike
from bench.overload.setup import REFUSAL


@dataclass
class Outcome:
    """`statuses` are of every attempt, `failures` the requests that an SDK gave up, `wrong` those refused though
    harmless."""

    requests: int = 0
    failures: int = 0
    wrong: int = 0
    statuses: Counter[int] = field(default_factory=Counter)

    def row(self) -> dict[str, object]:
        """As JSON."""
        statuses = {str(status): count for status, count in sorted(self.statuses.items())}
        return {"requests": self.requests, "failures": self.failures, "wrong": self.wrong, "statuses": statuses}


def ask(
    port: int, texts: Sequence[str], clients: int, seconds: float, others: Callable[[], None], pause_s: float
) -> Outcome:
    """Let so many threads ask one harmless text after another for so long, and `others` again and again beside them."""
    found = Outcome()
    hooks: Any = {"response": [lambda response: found.statuses.update([response.status_code])]}
    base = f"http://127.0.0.1:{port}"
    numbers = itertools.count(77 << 20)
    until = time.monotonic() + seconds
    oai = openai.OpenAI(base_url=base + "/v1", api_key="k", http_client=openai.DefaultHttpxClient(event_hooks=hooks))
    claude = anthropic.Anthropic(
        base_url=base, api_key="k", http_client=anthropic.DefaultHttpxClient(event_hooks=hooks)
    )

    def chat(text: str) -> str:
        answer = oai.chat.completions.create(model="auto", messages=[{"role": "user", "content": text}])
        return answer.choices[0].message.content or ""

    def responses(text: str) -> str:
        return oai.responses.create(model="auto", input=text).output_text

    def messages(text: str) -> str:
        turns: list[anthropic.types.MessageParam] = [{"role": "user", "content": text}]
        answer = claude.messages.create(model="auto", max_tokens=9, messages=turns)
        return "".join(block.text for block in answer.content if block.type == "text")

    ways: list[Callable[[str], str]] = [chat, responses, messages]

    def one(number: int) -> None:
        while time.monotonic() < until:
            asked = next(numbers)
            sent = unlike(texts[asked % len(texts)], asked)
            found.requests += 1
            try:
                said = ways[number % len(ways)](sent)
            except (openai.APIError, anthropic.APIError):
                found.failures += 1
            else:
                found.wrong += REFUSAL in said

    def beside() -> None:
        while time.monotonic() < until:
            others()
            time.sleep(max(0.0, min(pause_s, until - time.monotonic())))

    with oai, claude, ThreadPoolExecutor(clients + 1) as threads:
        crowd = threads.submit(beside)
        for done in [threads.submit(one, number) for number in range(clients)]:
            done.result()
        crowd.result()
    return found
