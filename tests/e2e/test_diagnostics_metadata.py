"""Diagnostics of a decision arrive in Envoy's dynamic metadata, where filters and logs behind the router read them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from router.gateway.envoy import routes
from router.verdict import Forward
from router.wire.http import Head, Reply
from tests.e2e.envoy_rig import ByModel, envoy, free_port, make_plan, provider, remembering, replica, router

STRUCTS = {"vllm.semantic_router": {"decision_diagnostics": {"decision": "code", "truncated": False}}}


class Diagnosing(ByModel):
    async def on_request(self, head: Head, body: bytes) -> Reply | Forward:
        verdict = await super().on_request(head, body)
        assert isinstance(verdict, Forward)
        return msgspec.structs.replace(verdict, structs=STRUCTS)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_log_behind_the_router_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streamed: bool
) -> None:
    read = "%DYNAMIC_METADATA(vllm.semantic_router:decision_diagnostics:decision)%"
    monkeypatch.setattr(routes, "FIXED_ANSWER_HEADERS", {"x-read": read})
    grpc_port = free_port()
    async with remembering("small") as small, router(Diagnosing(), grpc_port):
        plan = make_plan(
            provider("small", replica(small.port)), port=free_port(), extproc=grpc_port, streamed_body=streamed
        )
        async with envoy(plan, tmp_path) as rig:
            status, headers, _ = await rig.chat("small")
    assert (status, headers["x-read"], headers["x-vsr-selected-decision"]) == (200, "code", "code")
