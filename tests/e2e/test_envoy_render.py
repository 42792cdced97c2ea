"""Rendered configuration, checked by Envoy itself and by requests through it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import grpc
import grpc.aio
import pytest

from router.config.plan import ApiFormat, Auth, Backend, Listener, Plan
from router.gateway.envoy import Target, render
from router.gateway.envoy.admin import RejectedError
from router.gateway.envoy.filenames import CLUSTERS
from router.gateway.envoy.files import remove_stale, update, write_file, write_xds
from router.gateway.envoy.run import graceful_stop, validate
from tests.e2e.envoy_rig import (
    ByModel,
    envoy,
    free_port,
    make_plan,
    provider,
    raw_router,
    remembering,
    replica,
    router,
)

pytestmark = pytest.mark.e2e

ADMIN = Target("127.0.0.1", 19901)
FOLDER = Path("/nowhere")


def varied(tmp_path: Path) -> dict[str, Plan]:
    key = tmp_path / "key"
    key.write_text("secret-of-a-file")
    plain = provider("plain", replica(9001))
    https = replace(replica(443, host="api.example.com", auth=Auth(env="POINTSMAN_TEST_KEY")), scheme="https")
    return {
        "one replica": make_plan(plain),
        "names": make_plan(provider("meta/llama-3.1:8b é", replica(9001, host="localhost"))),
        "ipv6": make_plan(provider("v6", replica(9001, host="::1"))),
        "several hosts": make_plan(provider("m", replica(9001, weight=3), replica(9002, host="localhost"))),
        "several paths and keys": make_plan(
            provider("m", replica(9001, path="/llm/v1", auth=Auth(file=str(key))), replica(9002, path="", weight=5)),
            default_model="m",
        ),
        "https": make_plan(
            provider("a", https, api_format=ApiFormat.MESSAGES),
            provider("b", https, replace(https, host="b.example.com", port=8443)),
            provider("c", replace(https, host="127.0.0.1", port=8443)),
            default_model="a",
        ),
        "streamed": make_plan(plain, streamed_body=True, signal_timeout_ms=1500),
        "two listeners": make_plan(
            plain,
            default_model="plain",
            listeners=(
                Listener("open", "127.0.0.1", 18899, 5.0, False),
                Listener("shut", "0.0.0.0", 18898, 900.0, True),  # noqa: S104
            ),
        ),
    }


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "xds"])
def test_envoy_accepts_every_variety(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dynamic: bool) -> None:
    monkeypatch.setenv("POINTSMAN_TEST_KEY", "sk-test")
    for index, (name, plan) in enumerate(varied(tmp_path).items()):
        folder = tmp_path / str(index)
        xds = folder / "xds" if dynamic else None
        rendered = render(plan, admin=ADMIN, xds_dir=xds, access_log=index % 2 == 0)
        write_xds(xds or folder, rendered)
        bootstrap = folder / "bootstrap.yaml"
        bootstrap.write_text(rendered.yaml())
        assert validate(bootstrap) is None, name


def test_a_fault_is_reported_in_envoys_words(tmp_path: Path) -> None:
    bootstrap = tmp_path / "bootstrap.yaml"
    bootstrap.write_text("admin: {adress: x}")
    assert "adress" in (validate(bootstrap) or "")


def test_an_unset_key_stops_envoy_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POINTSMAN_NO_KEY", raising=False)
    plan = make_plan(provider("m", replica(9001, auth=Auth(env="POINTSMAN_NO_KEY"))))
    bootstrap = tmp_path / "bootstrap.yaml"
    bootstrap.write_text(render(plan, admin=ADMIN).yaml())
    assert "POINTSMAN_NO_KEY" in (validate(bootstrap) or "")


async def test_requests_go_where_the_router_says_and_nobody_else_can_say_it(tmp_path: Path) -> None:
    handler = ByModel()
    handler.extra = {"x-vsr-note": "for envoy only", "x-plugin": "kept"}
    port, grpc_port = free_port(), free_port()
    async with remembering("small") as small, remembering("large") as large, router(handler, grpc_port):
        models = provider("small", replica(small.port)), provider("large", replica(large.port, path="/llm/v1"))
        plan = make_plan(*models, port=port, extproc=grpc_port, default_model="small")
        async with envoy(plan, tmp_path) as rig:
            forged = {
                "x-selected-model": "small",
                "X-VSR-Foo": "1",
                "x_vsr_bar": "1",
                "x-vsr_baz": "1",
                "session_id": "s",
            }
            status, headers, _ = await rig.chat("large", forged, "/v1/chat/completions?trace=1")
            assert status == 200
            assert not small.seen
            assert large.seen[0].path == "/llm/v1/chat/completions?trace=1"
            assert large.seen[0].all("host") == [f"127.0.0.1:{large.port}"]
            names = {name for name, _ in large.seen[0].headers}
            assert not [n for n in names if "vsr" in n or "selected" in n or n.startswith("x-envoy")]
            assert {"session_id", "x-plugin"} <= names
            assert not [n for n in handler.heads[0].headers if "vsr" in n or "selected" in n]

            told = {name: value for name, value in headers.items() if "vsr" in name}
            assert told == {
                "x-vsr-selected-recipe": "default",
                "x-vsr-selected-decision": "code",
                "x-vsr-selected-model": "large",
                "x-vsr-selected-confidence": "0.9000",
                "x-vsr-schema-version": "2",
                "x-vsr-response-path": "upstream",
            }
            assert headers["server"] == "large"

            # The router's own answers keep their headers and bytes, whatever their status.
            status, headers, body = await rig.chat("refuse")
            assert (status, headers["x-vsr-response-path"], body) == (413, "error", b'{"mine":true}')
            status, headers, _ = await rig.send("GET", "/v1/models")
            assert (status, headers["x-vsr-response-path"]) == (200, "fast_response")

            # A model that no route knows is not sent anywhere.
            status, _, body = await rig.chat("unheard-of")
            assert status == 503
            assert json.loads(body)["error"]["code"] == "no_decision"

            # What is none of the router's business passes untouched, whatever its size, and claims nothing.
            big = b"x" * (6 * 1024 * 1024)
            status, headers, _ = await rig.send("PUT", "/files/a?b=c", {"x-selected-model": "large"}, big)
            assert status == 200
            assert (small.seen[-1].path, small.seen[-1].body == big) == ("/files/a?b=c", True)
            assert not [name for name in headers if "vsr" in name]
            assert len(large.seen) == 1


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "//v1//chat/completions",
        "/x/../v1/messages",
        "/v1%2Fmessages",
        "/%76%31/chat/completions",
        "/V1/chat/completions",
        "/v1;a=b/chat/completions",
        "/OpenAI/deployments/x/chat/completions",
        "/%2576%2531/chat/completions",
        "/a/%252e%252e/v1/chat/completions",
        "/v1",
        "/openai/",
    ],
)
async def test_an_undecided_llm_request_reaches_no_backend(tmp_path: Path, path: str) -> None:
    async def leave_in_peace(_: grpc.aio.ServicerContext) -> None:  # type: ignore[type-arg]
        return

    port, grpc_port = free_port(), free_port()
    async with remembering("small") as small, raw_router(grpc_port, leave_in_peace):
        plan = make_plan(provider("small", replica(small.port)), port=port, extproc=grpc_port, default_model="small")
        async with envoy(plan, tmp_path, wait=False) as rig:
            status, headers, body = await rig.chat("small", {"x-selected-model": "small"}, path)
            assert (status, headers["content-type"]) == (503, "application/json")
            assert "no decision" in json.loads(body)["error"]["message"]
            assert ("type" in json.loads(body)) == ("messages" in path)
            if path == "/v1":
                assert (await rig.send("GET", "/v1/models"))[0] == 503
                assert (await rig.send("GET", "/healthz"))[0] == 200
            assert len(small.seen) == (path == "/v1")


@pytest.mark.parametrize(("served_at", "path"), [("", "/chat/completions"), ("/api/v4", "/Api/v4/chat/completions")])
async def test_an_undecided_request_by_the_backends_own_path_reaches_none(
    tmp_path: Path, served_at: str, path: str
) -> None:
    async def leave_in_peace(_: grpc.aio.ServicerContext) -> None:  # type: ignore[type-arg]
        return

    port, grpc_port = free_port(), free_port()
    async with remembering("small") as small, raw_router(grpc_port, leave_in_peace):
        model = provider("small", replica(small.port, path=served_at))
        plan = make_plan(model, port=port, extproc=grpc_port, default_model="small")
        async with envoy(plan, tmp_path, wait=False) as rig:
            assert (await rig.chat("small", {}, path))[0] == 503
            assert (await rig.send("GET", "/healthz"))[0] == 200
            assert [one.path for one in small.seen] == ["/healthz"]


async def test_a_router_that_is_down_or_fails_lets_nothing_through(tmp_path: Path) -> None:
    async def fail(context: grpc.aio.ServicerContext) -> None:  # type: ignore[type-arg]
        await context.abort(grpc.StatusCode.INTERNAL, "no")

    port, grpc_port = free_port(), free_port()
    async with remembering("small") as small:
        plan = make_plan(provider("small", replica(small.port)), port=port, extproc=grpc_port, default_model="small")
        async with envoy(plan, tmp_path, wait=False) as rig:
            status, headers, body = await rig.chat("small")
            assert (status, headers["content-type"]) == (503, "application/json")
            assert json.loads(body)["error"]["code"] == "router_unavailable"
            status, _, body = await rig.chat("small", path="/v1/messages")
            assert (status, json.loads(body)["type"]) == (503, "error")
            assert (await rig.send("GET", "/other"))[0] == 503
            async with raw_router(grpc_port, fail):
                assert (await rig.chat("small"))[0] == 503
            assert not small.seen
            handler = ByModel()
            async with router(handler, grpc_port):
                for _ in range(100):
                    status = (await rig.chat("small"))[0]
                    if status == 200:
                        break
                    await asyncio.sleep(0.05)
                assert status == 200


async def test_too_large_a_body_is_refused_in_the_clients_format(tmp_path: Path) -> None:
    port, grpc_port = free_port(), free_port()
    async with remembering("small") as small, router(ByModel(), grpc_port):
        plan = make_plan(provider("small", replica(small.port)), port=port, extproc=grpc_port)
        async with envoy(plan, tmp_path) as rig:
            fits = json.dumps({"model": "small", "pad": "x" * (plan.max_body_bytes - 100)}).encode()
            assert (await rig.send("POST", "/v1/chat/completions", body=fits))[0] == 200
            assert small.seen[0].body == fits
            huge = b"x" * (plan.max_body_bytes + 1024 * 1024)

            async def chunks() -> AsyncIterator[bytes]:
                for start in range(0, len(huge), 65536):
                    yield huge[start : start + 65536]

            # Whether the router sees the length or Envoy the bytes first is a race; nothing is forwarded either way.
            status, _, body = await rig.send("POST", "/v1/messages", body=huge)
            assert b"body_too_large" in body or b"request_too_large" in body
            status, _, body = await rig.send("POST", "/v1/messages", body=chunks())
            assert (status, json.loads(body)["error"]["type"]) == (413, "request_too_large")
            status, headers, body = await rig.send("POST", "/v1/responses", body=chunks())
            assert (status, json.loads(body)["error"]["code"]) == (413, "body_too_large")
            assert headers["content-type"] == "application/json"
            assert len(small.seen) == 1


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "xds"])
async def test_keys_are_injected_and_never_two_travel(tmp_path: Path, dynamic: bool) -> None:
    key = tmp_path / "keys" / "claude"
    key.parent.mkdir()
    key.write_text("sk-from-file")
    port, grpc_port = free_port(), free_port()
    async with remembering("b") as backend, router(ByModel(), grpc_port):
        at = backend.port
        plan = make_plan(
            provider("chat", replica(at, auth=Auth(env="POINTSMAN_TEST_KEY"))),
            provider("claude", replica(at, auth=Auth(file=str(key))), api_format=ApiFormat.MESSAGES),
            provider("open", replica(at)),
            port=port,
            extproc=grpc_port,
            default_model="chat",
        )
        async with envoy(plan, tmp_path, dynamic=dynamic, environ={"POINTSMAN_TEST_KEY": "sk-from-env"}) as rig:

            async def sent(model: str, path: str = "/v1/chat/completions") -> tuple[list[str], list[str], list[str]]:
                client = {"authorization": "Bearer client", "x-api-key": "client", "api-key": "client"}
                status, _, _ = await rig.chat(model, client, path)
                assert status == 200
                last = backend.seen[-1]
                return last.all("authorization"), last.all("x-api-key"), last.all("api-key")

            assert await sent("chat") == (["Bearer sk-from-env"], [], [])
            assert await sent("claude", "/v1/messages") == ([], ["sk-from-file"], [])
            assert await sent("open") == (["Bearer client"], ["client"], ["client"])
            # Traffic without a decision never carries the operator's key, though it goes to the same backend.
            assert await sent("chat", "/files") == (["Bearer client"], ["client"], ["client"])
            if dynamic:
                write_file(key, b"sk-rotated")
                for _ in range(100):
                    if await sent("claude", "/v1/messages") == ([], ["sk-rotated"], []):
                        break
                    await asyncio.sleep(0.05)
                assert await sent("claude", "/v1/messages") == ([], ["sk-rotated"], [])
        written = (tmp_path / "envoy.log").read_text() + (tmp_path / "bootstrap.yaml").read_text()
        written += "".join(path.read_text() for path in tmp_path.glob("xds/*"))  # noqa: ASYNC240
        assert "sk-" not in written
        assert "Bearer client" not in written


async def test_replicas_share_by_weight_across_paths_and_hosts(tmp_path: Path) -> None:
    port, grpc_port = free_port(), free_port()
    async with remembering("a") as a, remembering("b") as b, router(ByModel(), grpc_port):
        model = provider("m", replica(a.port, path="", weight=3), replica(b.port, host="localhost", weight=1))
        async with envoy(make_plan(model, port=port, extproc=grpc_port), tmp_path) as rig:
            counts = Counter([(await rig.chat("m"))[2] for _ in range(200)])
            assert {seen.path for seen in a.seen} == {"/chat/completions"}
            assert {seen.path for seen in b.seen} == {"/v1/chat/completions"}
            assert set(b.seen[0].all("host")) == {f"localhost:{b.port}"}
            assert 110 <= counts[b'{"backend": "a"}'] <= 185


async def test_a_reload_under_load_loses_no_request(tmp_path: Path) -> None:
    handler = ByModel()
    port, grpc_port = free_port(), free_port()
    async with remembering("old") as old, remembering("new") as new, router(handler, grpc_port):
        first = make_plan(
            provider("m", replica(old.port)), provider("gone", replica(old.port)), port=port, extproc=grpc_port
        )
        second = replace(
            first, revision="two", models={"m": provider("m", replica(new.port)), "n": provider("n", replica(new.port))}
        )
        async with envoy(first, tmp_path, dynamic=True) as rig:
            handler.extra = {"x-vsr-plan": "one"}
            results: Counter[tuple[int, bytes]] = Counter()
            stop = asyncio.Event()

            async def load() -> None:
                while not stop.is_set():
                    status, _, body = await rig.chat("m")
                    results[status, body] += 1

            xds = rig.folder / "xds"
            async with asyncio.TaskGroup() as group:
                for _ in range(4):
                    group.create_task(load())
                slow = group.create_task(
                    rig.send("POST", "/v1/chat/completions", body=b'{"model": "gone", "a": "slow"}')
                )
                await asyncio.sleep(0.3)
                both = render(second, previous=first, admin=rig.admin_target, xds_dir=xds, access_log=True)
                changed = await update(xds, both, rig.admin)
                assert CLUSTERS in changed
                assert "listeners.json" not in changed
                # Envoy has both; what the old plan decided still goes to its backends.
                seen = len(new.seen)
                assert (await rig.chat("m"))[2] == b'{"backend": "old"}'
                assert (await rig.chat("n"))[2] == b'{"backend": "new"}'
                assert len(new.seen) == seen + 1
                handler.extra = {"x-vsr-plan": "two"}
                assert (await rig.chat("m"))[2] == b'{"backend": "new"}'
                await asyncio.sleep(0.2)
                alone = render(second, admin=rig.admin_target, xds_dir=xds, access_log=True)
                await update(xds, alone, rig.admin)
                remove_stale(xds, alone)
                await asyncio.sleep(0.3)
                stop.set()
                # An answer that streams outlives its cluster.
                assert (await slow)[2].endswith(b"data: 19\n\n")
            assert {status for status, _ in results} == {200}
            assert sum(results.values()) > 20
            assert (await rig.chat("gone"))[0] == 503


async def test_a_listener_change_under_load_loses_no_request(tmp_path: Path) -> None:
    port, grpc_port = free_port(), free_port()
    async with remembering("b") as backend, router(ByModel(), grpc_port):
        first = make_plan(provider("m", replica(backend.port)), port=port, extproc=grpc_port)
        async with envoy(first, tmp_path, dynamic=True) as rig:
            results: Counter[int] = Counter()
            stop = asyncio.Event()

            async def load() -> None:
                while not stop.is_set():
                    results[(await rig.chat("m"))[0]] += 1

            async with asyncio.TaskGroup() as group:
                for _ in range(4):
                    group.create_task(load())
                for round_ in range(3):
                    await asyncio.sleep(0.2)
                    longer = replace(first, signal_timeout_ms=20_000 + round_)
                    changed = await update(
                        rig.folder / "xds",
                        render(longer, admin=rig.admin_target, xds_dir=rig.folder / "xds", access_log=True),
                        rig.admin,
                    )
                    assert "listeners.json" in changed
                await asyncio.sleep(0.3)
                stop.set()
            assert set(results) == {200}


async def test_a_refused_update_is_told_and_taken_back(tmp_path: Path) -> None:
    port, grpc_port = free_port(), free_port()
    async with remembering("b") as backend, router(ByModel(), grpc_port):
        first = make_plan(provider("m", replica(backend.port)), port=port, extproc=grpc_port)
        async with envoy(first, tmp_path, dynamic=True) as rig:
            xds = rig.folder / "xds"
            before = {path.name: path.read_bytes() for path in xds.iterdir()}

            async def reload(plan: Plan) -> None:
                await update(xds, render(plan, admin=rig.admin_target, xds_dir=xds, access_log=True), rig.admin)

            nowhere = Backend("http", "127.0.0.1", 99999, "/v1", 1, None)
            with pytest.raises(RejectedError) as refusal:
                await reload(replace(first, models={"m": provider("m", nowhere)}))
            assert refusal.value.file == CLUSTERS
            taken = Listener("second", "127.0.0.1", backend.port, 30.0, False)
            with pytest.raises(RejectedError, match=r"listeners\.json: .*[Aa]ddress"):
                await reload(replace(first, listeners=(*first.listeners, taken)))
            for name, content in before.items():
                assert (xds / name).read_bytes() == content
            assert (await rig.chat("m"))[0] == 200


async def test_stopping_lets_streams_finish(tmp_path: Path) -> None:
    port, grpc_port = free_port(), free_port()
    async with remembering("b") as backend, router(ByModel(), grpc_port):
        plan = make_plan(provider("m", replica(backend.port)), port=port, extproc=grpc_port)
        async with envoy(plan, tmp_path) as rig:
            slow = asyncio.create_task(rig.send("POST", "/v1/chat/completions", body=b'{"model": "m", "a": "slow"}'))
            while not backend.seen:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            assert await graceful_stop(rig.admin, rig.process, grace_s=10) == 0
            status, _, body = await slow
            assert status == 200
            assert body.endswith(b"data: 19\n\n")


async def test_full_duplex(tmp_path: Path) -> None:
    port, grpc_port = free_port(), free_port()
    async with remembering("small") as small, router(ByModel(), grpc_port):
        models = (provider("small", replica(small.port)),)
        plan = make_plan(*models, port=port, extproc=grpc_port, streamed_body=True, default_model="small")
        async with envoy(plan, tmp_path) as rig:
            status, headers, _ = await rig.chat("small")
            assert (status, headers["x-vsr-selected-model"]) == (200, "small")
            big = b"x" * (6 * 1024 * 1024)
            assert (await rig.send("POST", "/files", body=big))[0] == 200
            assert small.seen[-1].body == big
