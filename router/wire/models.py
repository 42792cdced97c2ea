"""The list of models that clients may name: one body that both the OpenAI and the Anthropic SDK read.

Source: reference.md 7.1 (`GET /v1/models`).
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from router.wire.http import Reply

_EPOCH = "1970-01-01T00:00:00Z"  # the Messages API's own word for "release date unknown"


def models_reply(names: Sequence[str]) -> Reply:
    """200 with `names` in their order, on one page."""
    data = [
        {
            "id": name,
            "object": "model",
            "created": 0,
            "owned_by": "pointsman",
            "type": "model",
            "display_name": name,
            "created_at": _EPOCH,
            "lifecycle": "active",
        }
        for name in names
    ]
    page = {
        "object": "list",
        "data": data,
        "has_more": False,
        "first_id": names[0] if names else None,
        "last_id": names[-1] if names else None,
    }
    return Reply(200, {"content-type": "application/json"}, orjson.dumps(page))
