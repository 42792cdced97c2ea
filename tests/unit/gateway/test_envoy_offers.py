"""How the router learns by which listener a request came: from Envoy alone, and only where it matters."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from router.config.offers import LISTENER_HEADER, Offer
from router.config.plan import Listener, Plan
from router.gateway.envoy import Target, render
from router.gateway.envoy.filenames import LISTENERS
from router.gateway.envoy.names import OWNED_HEADERS
from tests.e2e.envoy_rig import make_plan, provider, replica

ADMIN = Target("127.0.0.1", 9901)
AUTO = Offer(frozenset({"auto"}), default=True)


def plan_with(*offers: Offer | None, peers: tuple[str, ...] = ()) -> Plan:
    """One listener for each offer."""
    listeners = tuple(
        Listener(f"l{number}", "127.0.0.1", 8801 + number, 300.0, False, peers, offer=offer)
        for number, offer in enumerate(offers)
    )
    return replace(make_plan(provider("m", replica(1))), listeners=listeners)


def chains(plan: Plan, previous: Plan | None = None) -> list[list[dict[str, Any]]]:
    """The filter chains of each listener."""
    rendered = render(plan, admin=ADMIN, previous=previous, xds_dir=Path("/xds") if previous else None)
    found = rendered.files.get(LISTENERS) or rendered.bootstrap["static_resources"]["listeners"]
    return [one["filter_chains"] for one in found]


def mutations(chain: dict[str, Any]) -> list[dict[str, Any]]:
    """What is done to headers first of all."""
    (extension,) = chain["filters"][0]["typed_config"]["early_header_mutation_extensions"]
    done: list[dict[str, Any]] = extension["typed_config"]["mutations"]
    return done


def told(chain: dict[str, Any]) -> list[str]:
    """What the router is told about the listener."""
    headers = [one["append"] for one in mutations(chain) if "append" in one]
    assert all(one["append_action"] == "OVERWRITE_IF_EXISTS_OR_ADD" for one in headers)
    return [one["header"]["value"] for one in headers if one["header"]["key"] == LISTENER_HEADER]


@pytest.mark.parametrize("offers", [(None, None), (AUTO, AUTO), (AUTO,)])
def test_nothing_is_told_where_it_does_not_matter(offers: tuple[Offer | None, ...]) -> None:
    for (chain,) in chains(plan_with(*offers)):
        assert told(chain) == []
        assert f'"exact": "{LISTENER_HEADER}"' not in json.dumps(chain)
        assert OWNED_HEADERS in json.dumps(mutations(chain))


def test_where_it_matters_every_chain_of_every_listener_tells() -> None:
    listeners = chains(plan_with(AUTO, None, peers=("10.0.0.0/8",)))
    assert [[told(chain) for chain in one] for one in listeners] == [
        [["127.0.0.1:8801"], ["127.0.0.1:8801"]],
        [["127.0.0.1:8802"], ["127.0.0.1:8802"]],
    ]
    for chain in (chain for one in listeners for chain in one):
        assert f'"exact": "{LISTENER_HEADER}"' in json.dumps(chain)


@pytest.mark.parametrize("name", ["pointsman-listener", "pointsman_listener"])
def test_what_a_client_says_goes_first_and_nothing_removes_the_word_again(name: str) -> None:
    (chain,), _ = chains(plan_with(AUTO, None))
    patterns = [one["remove_on_match"]["key_matcher"]["safe_regex"]["regex"] if "append" not in one else None
                for one in mutations(chain)]  # fmt: skip
    place = patterns.index(None)
    assert any(re.fullmatch(pattern, name) for pattern in patterns[:place] if pattern)
    assert not any(re.fullmatch(pattern, name) for pattern in patterns[place:] if pattern)


@pytest.mark.parametrize("name", ["pointsman-listener", "pointsman_listener"])
def test_no_backend_sees_it(name: str) -> None:
    assert re.fullmatch(OWNED_HEADERS, name)


def test_during_a_reload_the_plan_that_leaves_is_still_told() -> None:
    (chain,), _ = chains(plan_with(None, None), previous=plan_with(AUTO, None))
    assert told(chain) == ["127.0.0.1:8801"]
