"""Why serving cannot begin."""

from __future__ import annotations


class StartFailed(Exception):
    """The product cannot start here; the message says what is in the way, for the operator."""


class NotServable(Exception):
    """A valid configuration that cannot be served as things are; `problems` says why, one sentence each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
