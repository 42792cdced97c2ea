"""Settings of the phase machine."""

from __future__ import annotations

from dataclasses import dataclass

from router.gateway.proto.ext_proc_pb2 import ProcessingMode


@dataclass(frozen=True, slots=True)
class MachineOptions:
    """How the Envoy filter in front is configured, and what is done about it.

    `max_body_bytes`: largest request body, in bytes as received. `request_body_mode`, `response_body_mode`: assumed
    when the proxy does not name its own (Envoy does). `allow_mode_override`: the filter honours mode overrides.
    `clear_route_cache`: ask Envoy to choose the route again after a decision. `finish_after_verdict`: leave the stream
    as soon as the request is settled, so that no response phase is asked and a drain never waits for a slow answer; not
    done where response bodies are full duplex.
    """

    max_body_bytes: int = 16 * 1024 * 1024
    request_body_mode: ProcessingMode.BodySendMode = ProcessingMode.BUFFERED
    response_body_mode: ProcessingMode.BodySendMode = ProcessingMode.NONE
    allow_mode_override: bool = False
    clear_route_cache: bool = True
    finish_after_verdict: bool = True
