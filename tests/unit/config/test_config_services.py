"""`global.services` beyond addresses."""

from __future__ import annotations

import pytest

from router.config.plan import Plan
from router.config.problems import ConfigError
from router.config.read_headers import read_headers
from router.config.services import AccessToken, ReplaySettings, TracingSettings
from tests.support.plans import PLAIN, plan_of


def with_services(text: str) -> Plan:
    return plan_of(f"{PLAIN}global:\n  services:\n    {text}\n")


def problem(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        with_services(text)
    (found,) = caught.value.problems
    return f"{found.path}: {found.message}"


class TestManagementApi:
    def test_tokens(self) -> None:
        plan = with_services(
            "management_api: {auth: {tokens: [{env: T, roles: [read]}, {file: /t, roles: [read, write]}]}}"
        )
        assert plan.services.access == (
            AccessToken("T", None, frozenset({"read"})),
            AccessToken(None, "/t", frozenset({"read", "write"})),
        )

    def test_another_address_needs_a_token(self) -> None:
        assert problem("management: {address: 0.0.0.0}").startswith(
            "global.services.management.address: the management"
        )
        auth = "management_api: {auth: {tokens: [{env: T, roles: [read]}]}}"
        assert with_services(f"management: {{address: 0.0.0.0}}\n    {auth}").services.access

    @pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.9", '"::1"', "localhost"])
    def test_a_loopback_address_does_not(self, address: str) -> None:
        assert with_services(f"management: {{address: {address}}}").services.access == ()

    @pytest.mark.parametrize("token", ["{roles: [read]}", "{env: T, file: /t, roles: [read]}"])
    def test_a_token_is_in_one_place(self, token: str) -> None:
        assert "exactly one of env and file" in problem(f"management_api: {{auth: {{tokens: [{token}]}}}}")

    def test_a_role_that_does_not_exist(self) -> None:
        assert "is not one of" in problem("management_api: {auth: {tokens: [{env: T, roles: [admin]}]}}")


class TestRouterReplay:
    def test_it_is_off_unless_enabled(self) -> None:
        assert plan_of().services.replay is None
        assert with_services("router_replay: {path: r.db}").services.replay is None

    def test_nothing_is_captured_unless_written(self) -> None:
        replay = with_services("router_replay: {enabled: true, path: /var/r.db}").services.replay
        assert replay == ReplaySettings("/var/r.db", 10_000, 7 * 24 * 3600, False, 4096, False)

    def test_a_path_is_needed(self) -> None:
        assert problem("router_replay: {enabled: true}") == 'global.services.router_replay: missing key "path"'

    def test_other_stores_are_not_built(self) -> None:
        assert "not supported yet" in problem("router_replay: {enabled: true, path: r, store_backend: redis}")


class TestTracing:
    def test_it_is_off_unless_enabled(self) -> None:
        assert plan_of().services.tracing is None
        assert with_services("observability: {tracing: {sample_ratio: 0.5}}").services.tracing is None

    def test_defaults(self) -> None:
        tracing = with_services("observability: {tracing: {enabled: true}}").services.tracing
        assert tracing == TracingSettings("http://127.0.0.1:4318/v1/traces", "pointsman", 1.0)

    def test_an_endpoint_is_a_url(self) -> None:
        assert "must be a URL" in problem("observability: {tracing: {enabled: true, endpoint: localhost}}")


class TestHeadersThatEnvoySends:
    def test_only_what_is_used(self) -> None:
        assert not {"traceparent", "x-request-id"} & set(read_headers(plan_of()))
        traced = read_headers(with_services("observability: {tracing: {enabled: true}}"))
        assert {"traceparent", "tracestate"} <= set(traced)
        recorded = with_services("router_replay: {enabled: true, path: r, capture_personal_data: true}")
        assert {"x-request-id", "x-session-id"} <= set(read_headers(recorded))
