"""Metadata of other namespaces goes out beside our own, in both body modes."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from router.gateway.proto.ext_proc_pb2 import ProcessingResponse
from router.gateway.replies import Changes, forward_body, forward_headers

STRUCT: dict[str, Any] = {"decision": "d", "signals": [{"matched": True, "value": 0.5}], "truncated": False}
STRUCTS = {"vllm.semantic_router": {"decision_diagnostics": STRUCT}}


@pytest.mark.parametrize("streamed", [False, True])
def test_both_namespaces(streamed: bool) -> None:
    told = {"recipe": "r"}
    if streamed:
        data = forward_headers(Changes(), told, clear_route_cache=True, drop_length=False, structs=STRUCTS)
    else:
        data = forward_body({"x-a": "b"}, (), told, b"body", clear_route_cache=True, structs=STRUCTS)
    response = ProcessingResponse.FromString(data)
    assert MessageToDict(response.dynamic_metadata) == {"pointsman": told, **STRUCTS}
