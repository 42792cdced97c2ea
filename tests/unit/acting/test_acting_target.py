"""What an outcome comes to: a backend, an answer of the decision's own, or an error."""

from __future__ import annotations

import pytest

from router.acting.target import Answered, Refused, Target, foregone, settle
from router.config.plan import ApiFormat
from router.deciding.engine import decide, prepare
from tests.support.plans import plan_of

CONFIG = """\
version: v0.5
listeners: [{name: public, address: 127.0.0.1, port: 8801}]
providers:
  models:
    - {name: general, backend_refs: [{endpoint: "http://127.0.0.1:9101/v1"}]}
recipes:
  - name: closed
    decisions:
      - {name: no, rules: {}, plugins: [{type: fast_response, configuration: {message: Closed today.}}]}
  - name: open
    decisions:
      - {name: all, rules: {}, modelRefs: [{model: general}]}
entrypoints:
  - {model_names: [closed], recipe: closed, default: true}
  - {model_names: [open], recipe: open}
"""
PLAN = plan_of(CONFIG)


def outcome(recipe: str):  # type: ignore[no-untyped-def]
    return decide(prepare(PLAN.recipes[recipe]), {})


@pytest.mark.parametrize("wanted", list(ApiFormat))
def test_a_fast_response_answers_every_format(wanted: ApiFormat) -> None:
    expected = Answered("no", "Closed today.", {"recipe": "closed", "confidence": "0.0000", "decision": "no"})
    assert settle(PLAN, "closed", outcome("closed"), wanted) == expected


def test_it_refuses_and_other_decisions_do_not() -> None:
    assert [PLAN.recipes[name].decisions[0].refuses for name in ("closed", "open")] == [True, False]


def test_a_backend_of_another_format_is_not_eligible() -> None:
    assert isinstance(settle(PLAN, "open", outcome("open"), ApiFormat.CHAT), Target)
    with pytest.raises(Refused):
        settle(PLAN, "open", outcome("open"), ApiFormat.MESSAGES)


def test_what_no_request_can_change_is_known_beforehand() -> None:
    assert set(foregone(PLAN, "closed", outcome("closed"))) == set(ApiFormat)
    assert set(foregone(PLAN, "open", outcome("open"))) == {ApiFormat.CHAT}
