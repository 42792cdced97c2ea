"""Who may say who asks: a filter chain of trusted peers, and nobody else's headers."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from router.config.plan import Plan
from router.gateway.envoy import Target, render
from router.gateway.envoy.names import IDENTITY_HEADERS, OWNED_HEADERS, ROUTER_HEADERS
from tests.e2e.envoy_rig import make_plan, provider, replica


def chains(plan: Plan) -> list[dict[str, Any]]:
    rendered = render(plan, admin=Target("127.0.0.1", 9901))
    found: list[dict[str, Any]] = rendered.bootstrap["static_resources"]["listeners"][0]["filter_chains"]
    return found


def dropped(chain: dict[str, Any]) -> str:
    """The pattern of headers that are removed before anything else happens."""
    manager = chain["filters"][0]["typed_config"]
    text = json.dumps(manager["early_header_mutation_extensions"])
    (pattern,) = re.findall(r'"regex": "([^"]*)"', text)
    return str(pattern)


def trusting(*peers: str) -> Plan:
    plan = make_plan(provider("m", replica(1)))
    return replace(plan, listeners=tuple(replace(one, trusted_peers=peers) for one in plan.listeners))


def test_without_trusted_peers_there_is_one_chain_that_drops_identity() -> None:
    (only,) = chains(trusting())
    assert OWNED_HEADERS in dropped(only)
    assert not any(f'"exact": "{name}"' in json.dumps(only) for name in IDENTITY_HEADERS)


@pytest.mark.parametrize("peers", [("10.0.0.0/8",), ("127.0.0.1/32", "fd00::/8")])
def test_trusted_peers_come_by_a_chain_of_their_own(peers: tuple[str, ...]) -> None:
    trusted, others = chains(trusting(*peers))
    ranges = trusted["filter_chain_match"]["direct_source_prefix_ranges"]
    assert tuple(f"{one['address_prefix']}/{one['prefix_len']}" for one in ranges) == peers
    assert "filter_chain_match" not in others
    assert ROUTER_HEADERS in dropped(trusted)
    assert OWNED_HEADERS not in dropped(trusted)
    assert OWNED_HEADERS in dropped(others)
    for name in IDENTITY_HEADERS:
        assert f'"exact": "{name}"' in json.dumps(trusted)
        assert f'"exact": "{name}"' not in json.dumps(others)
