"""The requests that the quickstart sends, and what each must come to."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Sample:
    """One request: `decision` is the decision that must be selected, `status` the answer that the client must see."""

    client: str
    prompt: str
    decision: str | None
    path: str = "/v1/chat/completions"
    model: str = "pointsman/auto"
    stream: bool = False
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    def body(self) -> dict[str, object]:
        """The JSON that the client sends."""
        body: dict[str, object] = {"model": self.model, "messages": [{"role": "user", "content": self.prompt}]}
        if self.path == "/v1/messages":
            body["max_tokens"] = 256
        if self.stream:
            body["stream"] = True
        return body


_ANTHROPIC = {"path": "/v1/messages", "headers": {"anthropic-version": "2023-06-01"}}

SAMPLES = (
    Sample("OpenAI", "How do I reverse a linked list in Java?", "code"),
    Sample("OpenAI", "What is the derivative of x squared times sin(x)?", "mathematics"),
    Sample("OpenAI", "Suggest three names for a bakery by the sea.", "everything-else", stream=True),
    Sample("Anthropic", "git rebase says there are conflicts, what now?", "code", **_ANTHROPIC),  # type: ignore[arg-type]
    Sample("Anthropic", "Prove that the sum of two odd integers is even.", "mathematics", stream=True, **_ANTHROPIC),  # type: ignore[arg-type]
    Sample("OpenAI", "To a model that nobody published.", None, model="gpt-nonesuch", status=400),
)
