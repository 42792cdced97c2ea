"""Which candidate answers: by format, by chance, and by a key."""

from __future__ import annotations

from collections import Counter

import pytest

from router.acting.selection import drawn, drawn_for, eligible
from router.config.candidates import ModelRef
from router.config.plan import ApiFormat, Decision, Node, Operator, ProviderModel


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


def test_those_of_the_clients_format_in_their_order() -> None:
    refs = eligible(decision("claude", "gpt-mini", "gpt"), MODELS, ApiFormat.CHAT)
    assert refs == (ModelRef("gpt-mini"), ModelRef("gpt"))
    assert eligible(decision("gpt", "claude"), MODELS, ApiFormat.MESSAGES) == (ModelRef("claude"),)
    assert eligible(decision("gpt"), MODELS, ApiFormat.RESPONSES) == ()


CANDIDATES = (ModelRef("a", 1), ModelRef("b", 0.5), ModelRef("c", 2.5))


@pytest.mark.parametrize(
    ("draw", "name"), [(0.0, "a"), (0.2499, "a"), (0.25, "b"), (0.3749, "b"), (0.375, "c"), (1 - 2**-53, "c")]
)
def test_drawn_by_weight(draw: float, name: str) -> None:
    assert drawn(CANDIDATES, draw).model == name


def test_a_key_always_draws_the_same_and_keys_by_weight() -> None:
    keys = [str(number).encode() for number in range(4000)]
    found = {key: drawn_for(CANDIDATES, key).model for key in keys}
    assert found == {key: drawn_for(CANDIDATES[::-1], key).model for key in keys}
    shares = {name: count / len(keys) for name, count in Counter(found.values()).items()}
    assert shares == {
        "a": pytest.approx(0.25, abs=0.03),
        "b": pytest.approx(0.125, abs=0.03),
        "c": pytest.approx(0.625, abs=0.03),
    }


def test_only_what_must_move_moves_when_a_candidate_goes() -> None:
    keys = [str(number).encode() for number in range(500)]
    for key in keys:
        before = drawn_for(CANDIDATES, key).model
        assert before == "b" or drawn_for((CANDIDATES[0], CANDIDATES[2]), key).model == before
