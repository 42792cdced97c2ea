"""`global.services` beyond addresses."""

from __future__ import annotations

import pytest

from router.config.actions import Recording
from router.config.plan import Plan
from router.config.problems import ConfigError
from router.config.read_headers import read_headers
from router.config.services import AccessToken, RedisSettings, ReplaySettings, TracingSettings
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
        assert replay == ReplaySettings("/var/r.db", 10_000, 7 * 24 * 3600, Recording())

    def test_a_path_is_needed(self) -> None:
        assert problem("router_replay: {enabled: true}") == 'global.services.router_replay: missing key "path"'

    def test_a_server_that_routers_share(self) -> None:
        server = "redis: {endpoint: redis://me@10.0.0.1:6379/2, password_env: P, key_prefix: a:b}"
        replay = with_services(f"router_replay: {{enabled: true, store_backend: redis, {server}}}").services.replay
        assert replay is not None
        assert replay.redis == RedisSettings("redis://me@10.0.0.1:6379/2", "a:b", "P")

    @pytest.mark.parametrize(
        ("written", "expected"),
        [
            ("store_backend: redis", 'missing key "redis"'),
            ("store_backend: redis, path: r.db, redis: {endpoint: redis://h}", "the store redis has no path"),
            ("path: r.db, redis: {endpoint: redis://h}", "the store sqlite has no server"),
            ("store_backend: redis, redis: {endpoint: redis://u:secret@h}", "without a password"),
            ("store_backend: redis, redis: {endpoint: http://h}", "a URL of redis, rediss or unix"),
            (
                "store_backend: redis, redis: {endpoint: redis://h, password_env: P, password_file: /p}",
                "password_env and password_file cannot both be given",
            ),
            ("path: r, store_backend: milvus", "not supported yet"),
            ("path: r, async_writes: true", "not supported yet"),
        ],
    )
    def test_stores_and_mistakes(self, written: str, expected: str) -> None:
        assert expected in problem(f"router_replay: {{enabled: true, {written}}}")


STORE = "global: {services: {router_replay: {path: /r.db}}}\n"


def with_plugin(settings: str = "", services: str = STORE) -> Plan:
    refs = "modelRefs: [{model: general}]"
    plugin = f"\n        plugins: [{{type: router_replay{settings and ', configuration: ' + settings}}}]"
    return plan_of(PLAIN.replace(refs, refs + plugin) + services)


def recordings(plan: Plan) -> list[Recording | None]:
    return [decision.actions.recording for recipe in plan.recipes.values() for decision in recipe.decisions]


class TestTheReplayPlugin:
    def test_it_records_its_own_decision_alone(self) -> None:
        plan = with_plugin()
        assert plan.services.replay is not None
        assert not plan.services.replay.every.enabled
        assert recordings(plan) == [None, None, Recording(True, True, True, 4096, 10_000, 100)]

    def test_what_is_written(self) -> None:
        plan = with_plugin("{max_records: 5, capture_response_body: false, max_body_bytes: 9, max_tool_trace_steps: 3}")
        assert recordings(plan)[2] == Recording(True, True, False, 9, 5, 3)

    def test_it_may_keep_a_decision_from_being_recorded(self) -> None:
        assert with_plugin("{enabled: false}").services.replay is None
        replay = with_plugin("{enabled: false}", STORE.replace("{path", "{enabled: true, path")).services.replay
        assert replay is not None
        assert replay.every.enabled

    def test_it_needs_a_store(self) -> None:
        with pytest.raises(ConfigError) as caught:
            with_plugin("", "")
        assert caught.value.problems[0].message == "router_replay has no store to write to"


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
