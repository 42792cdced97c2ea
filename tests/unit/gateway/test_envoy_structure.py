"""The structure of what is rendered; that Envoy accepts it and behaves is tested end to end."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from router.config.actions import Recording
from router.config.plan import ApiFormat, Auth, Listener, Plan, ProviderModel
from router.config.services import ReplaySettings
from router.gateway.envoy import Rendered, Target, missing_keys, parse_target, render
from router.gateway.envoy.names import LLM_PATHS, OWNED_HEADERS
from tests.e2e.envoy_rig import make_plan, provider, replica

ADMIN = Target("127.0.0.1", 9901)
XDS = Path("/etc/pointsman/xds")


def routes_of(rendered: Rendered) -> list[dict[str, Any]]:
    for name, resources in rendered.files.items():
        if name.startswith("routes."):
            routes: list[dict[str, Any]] = resources[0]["virtual_hosts"][0]["routes"]
            return routes
    raise AssertionError("no routes")


def clusters_of(rendered: Rendered) -> list[str]:
    return [cluster["name"] for cluster in rendered.files["clusters.json"]]


def find(value: Any, key: str) -> list[Any]:
    """Every value under this key, at any depth."""
    if isinstance(value, list):
        return [found for one in value for found in find(one, key)]
    if not isinstance(value, dict):
        return []
    here = [value[key]] if key in value else []
    return here + [found for inner in value.values() for found in find(inner, key)]


def manager(plan: Plan) -> dict[str, Any]:
    listener = render(plan, admin=ADMIN, xds_dir=XDS).files["listeners.json"][0]
    config: dict[str, Any] = listener["filter_chains"][0]["filters"][0]["typed_config"]
    return config


def test_envoys_types_are_loaded_only_to_render() -> None:
    code = (
        "import sys, router.gateway.envoy, router.gateway.envoy.files, router.gateway.envoy.run;"
        "sys.exit('envoy_data_plane' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_filter_is_fail_closed() -> None:
    plan = make_plan(provider("m", replica(1)))
    config = manager(plan)["http_filters"][0]["typed_config"]
    assert "failure_mode_allow" not in config  # false is the default, and defaults are not written
    assert config["status_on_error"] == {"code": "ServiceUnavailable"}
    assert config["processing_mode"]["request_body_mode"] == "BUFFERED"
    assert config["processing_mode"]["response_header_mode"] == "SKIP"
    streamed = manager(replace(plan, streamed_body=True))["http_filters"][0]["typed_config"]["processing_mode"]
    assert (streamed["request_body_mode"], streamed["request_trailer_mode"]) == ("FULL_DUPLEX_STREAMED", "SEND")


def test_answers_are_shown_only_where_something_reads_them() -> None:
    plan = make_plan(provider("m", replica(1)))
    recording = replace(plan.services, replay=ReplaySettings("r.db", 9, 0, Recording()))

    def asked(listeners: Any) -> tuple[str, bool]:
        config = listeners[0]["filter_chains"][0]["filters"][0]["typed_config"]["http_filters"][0]["typed_config"]
        allowed = [one.get("exact") for one in config["forward_rules"]["allowed_headers"]["patterns"]]
        assert "response_body_mode" not in config["processing_mode"]  # NONE is the default: the router asks for each
        return config["processing_mode"]["response_header_mode"], ":status" in allowed

    def rendered(plan: Plan, previous: Plan | None = None) -> Any:
        return render(plan, previous=previous, admin=ADMIN, xds_dir=XDS).files["listeners.json"]

    reading = replace(plan, revision="two", services=recording)
    assert asked(rendered(plan)) == ("SKIP", False)
    assert asked(rendered(reading)) == ("SEND", True)
    assert asked(rendered(plan, previous=reading)) == ("SEND", True)


@pytest.mark.parametrize(("signal_ms", "message", "idle"), [(0, "50s", "60s"), (1500, "6.500s", "30s")])
def test_times_follow_the_signals_deadline(signal_ms: int, message: str, idle: str) -> None:
    config = manager(make_plan(provider("m", replica(1)), signal_timeout_ms=signal_ms))
    assert config["http_filters"][0]["typed_config"]["message_timeout"] == message
    assert config["stream_idle_timeout"] == idle


def test_one_knob_moves_every_buffer() -> None:
    rendered = render(make_plan(provider("m", replica(1)), max_body_bytes=16 << 20), admin=ADMIN)
    limits = find(dict(rendered.bootstrap), "per_connection_buffer_limit_bytes")
    assert set(limits) == {(16 << 20) + 256 * 1024}
    assert len(limits) == 3


def test_a_reload_keeps_both_plans_apart() -> None:
    first = make_plan(provider("same", replica(1)), provider("moved", replica(1)), provider("gone", replica(1)))
    models = {name: first.models[name] for name in ("same",)} | {"moved": provider("moved", replica(2))}
    second = replace(first, revision="two", models=models)
    both = render(second, previous=first, admin=ADMIN, xds_dir=XDS)
    matches = [
        [(header["name"], header["string_match"]["exact"]) for header in route["match"]["headers"]]
        for route in routes_of(both)
        if route["name"].startswith("model/")
    ]
    assert matches == [
        [("x-selected-model", "moved"), ("x-vsr-plan", "one")],
        [("x-selected-model", "gone")],
        [("x-selected-model", "same")],
        [("x-selected-model", "moved")],
    ]
    assert len(set(clusters_of(both))) == len(clusters_of(both)) == 5
    alone = render(second, admin=ADMIN, xds_dir=XDS)
    assert set(clusters_of(alone)) < set(clusters_of(both))
    assert alone.version("listeners.json") == both.version("listeners.json")


def test_versions_follow_content() -> None:
    plan = make_plan(provider("m", replica(1)))
    one, same = render(plan, admin=ADMIN, xds_dir=XDS), render(plan, admin=ADMIN, xds_dir=XDS)
    other = render(replace(plan, default_model="m"), admin=ADMIN, xds_dir=XDS)
    assert one.versions() == same.versions() != other.versions()
    assert json.loads(one.content("clusters.json"))["version_info"] == one.version("clusters.json")
    assert yaml.safe_load(one.yaml()) == one.bootstrap


def test_a_static_bootstrap_holds_everything() -> None:
    rendered = render(make_plan(provider("m", replica(1))), admin=ADMIN)
    assert rendered.files == {}
    names = [cluster["name"] for cluster in rendered.bootstrap["static_resources"]["clusters"]]
    assert names == ["pointsman/ext_proc", "model/m"]


def test_routes_of_nothing_decided_come_last() -> None:
    plan = make_plan(provider("m", replica(1)), default_model="m")
    names = [route["name"].partition("@")[0] for route in routes_of(render(plan, admin=ADMIN, xds_dir=XDS))]
    closed = ["unknown_model", "undecided/messages", "undecided/post", "undecided/models"]
    assert names == ["model/m", *closed, "other/0"]
    shut = replace(plan, listeners=(Listener("main", "127.0.0.1", 1, 5.0, True),))
    assert routes_of(render(shut, admin=ADMIN, xds_dir=XDS))[-1]["direct_response"]["status"] == 404


def test_the_api_of_an_open_backend_is_closed_under_its_own_path_too() -> None:
    def closed(*models: ProviderModel) -> list[tuple[str, str]]:
        routes = routes_of(render(make_plan(*models, default_model="m"), admin=ADMIN, xds_dir=XDS))
        apis = [route for route in routes if route["name"].startswith("undecided/api")]
        return [(route["name"], route["match"]["safe_regex"]["regex"]) for route in apis]

    assert closed(provider("m", replica(1))) == []
    assert closed(provider("m", replica(1, path=""))) == [("undecided/api", "(?i)(?:[/;].*)?")]
    same_host = provider("n", replica(1, path="/a.b"))
    assert closed(provider("m", replica(1)), same_host) == [("undecided/api/a.b", r"(?i)/a\.b(?:[/;].*)?")]
    assert closed(provider("m", replica(1)), provider("n", replica(2, path="/a"))) == []


def test_a_key_never_goes_with_traffic_that_nobody_decided() -> None:
    plan = make_plan(provider("m", replica(1, auth=Auth(env="K"))), default_model="m")
    rendered = render(plan, admin=ADMIN, xds_dir=XDS)
    injecting = [c["name"].partition("@")[0] for c in rendered.files["clusters.json"] if "inject_key" in str(c)]
    assert injecting == ["model/m"]
    assert routes_of(rendered)[-1]["route"]["cluster"].startswith("open/m@")


@pytest.mark.parametrize(
    ("api_format", "header", "prefix"),
    [
        (ApiFormat.CHAT, "authorization", "Bearer "),
        (ApiFormat.RESPONSES, "authorization", "Bearer "),
        (ApiFormat.MESSAGES, "x-api-key", None),
    ],
)
def test_a_key_stands_where_the_dialect_wants_it(api_format: ApiFormat, header: str, prefix: str | None) -> None:
    plan = make_plan(provider("m", replica(1, auth=Auth(env="K")), api_format=api_format))
    rendered = render(plan, admin=ADMIN)
    [generic] = [one["typed_config"] for one in find(dict(rendered.bootstrap), "credential") if "typed_config" in one]
    assert (generic["header"], generic.get("header_value_prefix")) == (header, prefix)


def test_replicas_that_differ_in_path_get_routes_by_share() -> None:
    model = provider(
        "m", replica(1, path="/a", weight=1), replica(2, path="/b", weight=1), replica(3, path="/c", weight=2)
    )
    rendered = render(make_plan(model), admin=ADMIN, xds_dir=XDS)
    routes = [route for route in routes_of(rendered) if route["name"].startswith("model/")]
    shares = [route["match"].get("runtime_fraction", {}).get("default_value", {}).get("numerator") for route in routes]
    assert shares == [250_000, 500_000, None]
    assert [route["route"]["regex_rewrite"]["substitution"] for route in routes] == [r"/a\1", r"/b\1", r"/c\1"]


@pytest.mark.parametrize(
    ("path", "closed"),
    [
        ("/v1", True),
        ("/v1/x", True),
        ("/V1;p=1/x", True),
        ("/openai/x", True),
        ("/%C5%BF/x", True),
        ("/a/%252e", True),
        ("/v1beta/x", False),
        ("/files/a%20b", False),
        ("/", False),
    ],
)
def test_what_counts_as_an_llm_path(path: str, closed: bool) -> None:
    assert bool(re.fullmatch(LLM_PATHS, path)) is closed


@pytest.mark.parametrize(
    ("name", "owned"),
    [
        ("x-vsr-debug", True),
        ("x_vsr_debug", True),
        ("x-vsr_a", True),
        ("x-selected-model", True),
        ("x_selected_model", True),
        ("x-authz-user-id", True),
        ("x-vsrx", False),
        ("session_id", False),
        ("x-selected-model-2", False),
    ],
)
def test_which_headers_a_client_may_not_send(name: str, owned: bool) -> None:
    assert bool(re.fullmatch(OWNED_HEADERS, name)) is owned


@pytest.mark.parametrize("admin", ["0.0.0.0:9901", "10.0.0.1:9901", "example.com:9901", "[::]:9901"])
def test_the_admin_interface_stays_inside(admin: str) -> None:
    with pytest.raises(ValueError, match="loopback"):
        render(make_plan(provider("m", replica(1))), admin=parse_target(admin))


def test_a_reload_needs_files() -> None:
    plan = make_plan(provider("m", replica(1)))
    with pytest.raises(ValueError, match="xds_dir"):
        render(plan, previous=plan, admin=ADMIN)


def test_the_router_may_be_several_processes() -> None:
    targets = [parse_target("unix:///run/a.sock"), parse_target("unix:///run/b.sock")]
    rendered = render(make_plan(provider("m", replica(1))), admin=ADMIN, extproc=targets)
    cluster = rendered.bootstrap["static_resources"]["clusters"][0]
    assert [pipe["path"] for pipe in find(cluster, "pipe")] == ["/run/a.sock", "/run/b.sock"]
    assert find(cluster, "no_traffic_interval") == ["0.500s"]


@pytest.mark.parametrize("text", ["", "host", "host:", ":80", "host:port", "host:70000", "unix:relative", "host:²"])
def test_addresses_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|absolute"):
        parse_target(text)


@pytest.mark.parametrize("text", ["127.0.0.1:80", "[::1]:80", "unix:///run/x.sock"])
def test_addresses_read_back(text: str) -> None:
    assert str(parse_target(text)) == text


def test_missing_keys_are_named(tmp_path: Path) -> None:
    empty, two, good = tmp_path / "empty", tmp_path / "two", tmp_path / "good"
    empty.write_text("\n")
    two.write_text("a\nb\n")
    good.write_text("a\n")
    files = [str(path) for path in (empty, two, good, tmp_path / "none")]
    auths = [Auth(env="SET"), Auth(env="UNSET"), Auth(env="EMPTY"), *(Auth(file=file) for file in files)]
    plan = make_plan(provider("m", *(replica(1, auth=auth) for auth in auths)))
    problems = missing_keys(plan, {"SET": "k", "EMPTY": ""})
    assert len(problems) == 5
    for word in ("UNSET is unset", "EMPTY is unset or empty", "is empty", "more than one line", "cannot be read"):
        assert any(word in problem for problem in problems)
