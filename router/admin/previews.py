"""Previews: a request goes the way of every request, up to the verdict, and nothing is sent anywhere.

The decision models are really asked. What is counted of it is what they were asked, not a request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from router.acting.latencies import Latencies
from router.admin.bridge import Bridge
from router.explaining.explanation import explain
from router.explaining.notes import Notes
from router.explaining.posed import Posed, pose, text_of
from router.explaining.preview import as_json
from router.generation import Generation
from router.observe import Metrics
from router.pipeline import Pipeline
from router.wire.errors import ErrorCode, WireError
from router.wire.http import Reply

MARGIN_S = 5.0
"""How much longer than its signals a preview may take."""


class NotReadable(Exception):
    """The request cannot be read; the message says where, without quoting it."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Previewer:
    """Explains requests on what serves at the moment."""

    def __init__(
        self, bridge: Bridge, generation: Callable[[], Generation], latencies: Latencies | None = None
    ) -> None:
        """`latencies` is what the serving pipeline has measured of backends: read here, and not added to."""
        self._bridge = bridge
        self._latencies = latencies
        self._generation = generation
        self._uncounted = Metrics()

    async def preview(self, data: bytes, *, trace: bool, text: bool) -> dict[str, Any]:
        """The preview of a request as somebody poses it (see `pose`); `text` gives its text back, too.

        Raises NotReadable, and what `Bridge.call` raises.
        """
        try:
            posed = pose(data)
        except WireError as error:
            raise NotReadable(error.code, error.message) from None
        within_s = self._generation().signal_timeout_s + MARGIN_S
        generation, notes, verdict = await self._bridge.call(lambda: self._decide(posed), within_s=within_s)
        if notes.request is None:
            raise _not_readable(notes, verdict)
        policy = generation.policies.get(notes.recipe) if notes.recipe is not None else None
        explanation = explain(generation.plan, policy.compiled if policy is not None else None, notes)
        own = text_of(posed, notes.request) if text else None
        return as_json(explanation, generation.plan, trace=trace, text=own)

    async def _decide(self, posed: Posed) -> tuple[Generation, Notes, object]:
        generation, notes = self._generation(), Notes()
        pipeline = Pipeline(generation, self._uncounted, latencies=self._latencies)
        verdict = await pipeline.decided(posed.head, posed.body, generation, notes)
        return generation, notes, verdict


def _not_readable(notes: Notes, verdict: object) -> NotReadable:
    """The pipeline's own words for a body that it could not read."""
    code = notes.code or ErrorCode.INVALID_REQUEST
    if isinstance(verdict, Reply):
        error = orjson.loads(verdict.body).get("error", {})
        return NotReadable(code, str(error.get("message", code.value)))
    return NotReadable(code, code.value)
