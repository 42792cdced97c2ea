"""The first candidate that speaks the client's format."""

from __future__ import annotations

from router.acting.selection import choose
from router.config.plan import ApiFormat, Decision, ModelRef, Node, Operator, ProviderModel


def decision(*names: str) -> Decision:
    return Decision("d", 0, 0, Node(Operator.AND, ()), "no_match", tuple(map(ModelRef, names)), 0)


MODELS = {
    name: ProviderModel(name, api_format, name, ())
    for name, api_format in {
        "claude": ApiFormat.MESSAGES,
        "gpt": ApiFormat.CHAT,
        "gpt-mini": ApiFormat.CHAT,
    }.items()
}


def test_first_of_the_clients_format() -> None:
    assert choose(decision("claude", "gpt-mini", "gpt"), MODELS, ApiFormat.CHAT) == ModelRef("gpt-mini")
    assert choose(decision("gpt", "claude"), MODELS, ApiFormat.MESSAGES) == ModelRef("claude")


def test_none_eligible() -> None:
    assert choose(decision("gpt"), MODELS, ApiFormat.RESPONSES) is None
    assert choose(decision(), MODELS, ApiFormat.CHAT) is None
