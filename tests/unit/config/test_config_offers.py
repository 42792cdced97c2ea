"""`listeners[].models`: what clients may name, and who is warned that they may name too much."""

from __future__ import annotations

import pytest

from router.config.offers import LISTENER_HEADER, Offer
from router.config.plan import Plan
from router.config.read_headers import read_headers
from tests.support.config_samples import GOOD, edited, errors, read

SECOND = "  - name: inside\n    address: 127.0.0.1\n    port: 8802\n"
REFUSAL = """\
      - name: refuse
        priority: 90
        rules:
          operator: AND
          conditions:
            - type: systemone
              name: tools
        plugins:
          - type: fast_response
            configuration:
              message: No.
"""
REFUSING = edited(("      - name: coding\n", REFUSAL + "      - name: coding\n"))


def offering(models: str | None, inside: str | None = None, *, text: str = GOOD, second: bool = False) -> str:
    """A configuration whose listeners offer these, the second one if it is wanted."""
    first = "    port: 8801\n" + (f"    models: {models}\n" if models else "")
    other = SECOND + (f"    models: {inside}\n" if inside else "") if second else ""
    return edited(("    port: 8801\n", first + other), text=text)


def plan(*given: str | None, **more: bool) -> Plan:
    return read(offering(*given, **more)).plan  # type: ignore[arg-type]


def test_without_lists_nobody_is_asked_which_listener_it_was() -> None:
    found = plan(None, None, second=True)
    assert found.offers is None
    assert [listener.offer for listener in found.listeners] == [None, None]
    assert read_headers(found) == ()


def test_a_list_holds_entrypoints_and_provider_models() -> None:
    assert plan("[auto, large]").listeners[0].offer == Offer(frozenset({"auto", "large"}), default=True)


@pytest.mark.parametrize(("models", "default"), [("[auto]", True), ("[large]", False)])
def test_no_name_stands_for_the_default_entrypoint(models: str, default: bool) -> None:
    offer = plan(models).listeners[0].offer
    assert offer is not None
    assert (offer.takes(None), offer.takes("")) == (default, default)


def test_without_a_default_entrypoint_a_name_is_needed() -> None:
    offer = read(edited(("default: true", "default: false"), text=offering("[auto]"))).plan.listeners[0].offer
    assert offer is not None
    assert not offer.takes(None)


class TestSeveral:
    def test_each_listener_has_its_own(self) -> None:
        offers = plan("[auto]", None, second=True).offers
        assert offers is not None
        assert offers.differ
        assert offers.of({LISTENER_HEADER: "127.0.0.1:8801"}) == Offer(frozenset({"auto"}), default=True)
        assert offers.of({LISTENER_HEADER: "127.0.0.1:8802"}) is None

    @pytest.mark.parametrize("told", [{}, {LISTENER_HEADER: "127.0.0.1:9999"}, {LISTENER_HEADER: ""}])
    def test_an_unknown_one_offers_what_all_do(self, told: dict[str, str]) -> None:
        offers = plan("[auto, small]", "[small, large]", second=True).offers
        assert offers is not None
        assert offers.of(told) == Offer(frozenset({"small"}), default=False)

    def test_where_they_are_alike_nothing_is_told(self) -> None:
        alike = plan("[auto, small]", "[small, auto]", second=True)
        assert alike.offers is not None
        assert not alike.offers.differ
        assert read_headers(alike) == ()
        assert read_headers(plan("[auto]", None, second=True)) == (LISTENER_HEADER,)

    def test_what_they_agree_on(self) -> None:
        offers = plan("[auto, small]", None, second=True).offers
        assert offers is not None
        assert [offers.agreed(model) for model in ("auto", None, "large")] == [True, True, None]
        bounded = plan("[auto]", "[auto, small]", second=True).offers
        assert bounded is not None
        assert [bounded.agreed(model) for model in ("large", "small")] == [False, None]


MISTAKES = {
    "a slip": ("[auto, lrge]", '6:20: listeners[0].models[1]: no entrypoint or provider model is named "lrge"; '
               'did you mean "large"?'),
    "nothing like it": ("[zzzzzz]", '6:14: listeners[0].models[0]: no entrypoint or provider model is named "zzzzzz"; '
                        "known: auto, large, small"),
    "twice": ("[auto, auto]", '6:20: listeners[0].models[1]: "auto" is listed twice; remove it'),
    "none": ("[]", "6:13: listeners[0].models: must have at least 1 item, not 0"),
    "no list": ("auto", '6:13: listeners[0].models: must be a list, not "auto"'),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes(case: str) -> None:
    models, message = MISTAKES[case]
    assert errors(offering(models)) == [message]


def test_a_refused_entrypoint_is_no_second_mistake() -> None:
    text = edited(("model_names: [auto]", "model_names: auto"), text=offering("[auto]"))
    assert errors(text) == ['48:18: entrypoints[0].model_names: must be a list, not "auto"']


class TestWarnings:
    def test_a_way_round_a_refusal(self) -> None:
        (warning,) = read(REFUSING).warnings
        assert warning.render() == (
            'c.yaml:3:5: warning: listeners[0]: a client that names the model "large" itself skips the decision '
            '"refuse" of "default"; add models: [auto], what clients may name'
        )

    def test_each_open_listener(self) -> None:
        text = offering("[auto]", second=True, text=REFUSING)
        assert [warning.path for warning in read(text).warnings] == ["listeners[1]"]

    @pytest.mark.parametrize("models", ["[auto]", "[auto, large]"])
    def test_a_list_is_meant_as_it_stands(self, models: str) -> None:
        assert read(offering(models, text=REFUSING)).warnings == ()

    def test_nothing_refuses(self) -> None:
        assert read(GOOD).warnings == ()
