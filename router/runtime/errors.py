"""What can go wrong in the model runtime.

    RuntimeFault
    ├── ArtifactError      an artifact that cannot be served: names the file and the key, file hash, tensor or answer
    ├── DeviceError        a device that was asked for and cannot be had, or an ambiguous installation
    ├── Overloaded         the queue is full; the whole request is refused at once
    ├── DeadlineExceeded   the work was dropped before it started
    └── Unready            nothing is loaded yet, or the runtime is stopping

No message ever carries a state, a question or any other part of a request.
"""

from __future__ import annotations


class RuntimeFault(Exception):
    """Base of every error that the runtime raises on purpose."""


class ArtifactError(RuntimeFault):
    """The artifact cannot be loaded. `where` is the file, with the path of the key inside it when there is one."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(f"{where}: {message}")
        self.where = where
        self.message = message


class DeviceError(RuntimeFault):
    """The device asked for is not the device that was got."""


class Overloaded(RuntimeFault):
    """Admission was refused: too many requests or tokens are waiting already. Room is likely after `retry_after_s`."""

    def __init__(self, message: str, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class DeadlineExceeded(RuntimeFault):
    """The request's deadline passed while its work was still waiting."""


class Unready(RuntimeFault):
    """There is no model to answer with: still loading, or stopping."""
