"""What a configuration says about overload: of its decision models, and of the router itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

DEFAULT_WAIT_MS: Final = 2000
MOST_WAIT_MS: Final = 60_000
MOST_RETRY_AFTER_S: Final = 60
"""Some clients ignore a longer `Retry-After`, and others sleep it in full."""


@dataclass(frozen=True, slots=True)
class OverloadSettings:
    """What becomes of a request whose decision model has no room.

    `refuse`: the failure policies of its rules decide at once. `retry`: it waits up to `wait_ms`, and is answered an
    error that clients retry rather than refused or forwarded unread.
    """

    action: Literal["refuse", "retry"] = "refuse"
    wait_ms: int = DEFAULT_WAIT_MS
    retry_after_seconds: int = 0

    @property
    def retry_after_s(self) -> int:
        """The `Retry-After` of such an error: as written, else the wait rounded up; 1 to 60 whole seconds."""
        return min(MOST_RETRY_AFTER_S, max(1, self.retry_after_seconds or -(-self.wait_ms // 1000)))


@dataclass(frozen=True, slots=True)
class AdmissionSettings:
    """How many requests the router reads and decides at once, and how many bytes of theirs it holds. None leaves it to
    the memory that the process may use."""

    max_requests: int | None = None
    max_buffered_bytes: int | None = None


NO_BOUNDS: Final = AdmissionSettings()
DEFAULT_OVERLOAD: Final = OverloadSettings()
