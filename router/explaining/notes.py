"""What the pipeline writes down about one request for whoever wants to know: previews, replays and traces.

Nobody's notes cost nothing: the pipeline writes only into notes that it is given. They hold request text while the
request is decided; what is kept of them afterwards is their readers' business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from router.acting.standing import Contestants
from router.acting.target import Settled
from router.asking.plan import StateKey
from router.asking.report import CallReport, WaitReport
from router.deciding.engine import CompiledRecipe, Outcome
from router.deciding.guarded import GuardResult
from router.questions import Answer
from router.signals.reading import Reading
from router.wire.errors import ErrorCode
from router.wire.request import LlmRequest


@dataclass(slots=True)
class Notes:
    """One request on its way to a verdict. What was not reached is empty.

    `texts` is what the decision models were shown, by deployment and part of the request. `recipe` is None when the
    client named a provider model itself; `compiled` is what decided, set with the `outcome`; `waited` is how it waited
    for room in models; `contestants` is how candidates stood whose answers are measured; `code` is set when the request
    ended with an error of ours. Times are seconds of the pipeline's clock: `computed_at` is when the rules began that
    ask no model, `computing` how long they took, `asked_at` when the questions left; 0 for what there was none of.
    """

    request: LlmRequest | None = None
    recipe: str | None = None
    texts: Mapping[StateKey, str] = field(default_factory=dict)
    answers: Mapping[str, Answer] = field(default_factory=dict)
    readings: Mapping[str, Reading] = field(default_factory=dict)
    guards: Mapping[str, GuardResult] = field(default_factory=dict)
    calls: tuple[CallReport, ...] = ()
    waited: WaitReport | None = None
    compiled: CompiledRecipe | None = None
    outcome: Outcome | None = None
    contestants: Contestants | None = None
    target: Settled | None = None
    code: ErrorCode | None = None
    started: float = 0.0
    computed_at: float = 0.0
    computing: float = 0.0
    asked_at: float = 0.0
    answered_at: float = 0.0
    decided_at: float = 0.0
    settled_at: float = 0.0
    ended: float = 0.0

    def longest_calls(self) -> dict[str, float]:
        """Seconds of the longest call to each deployment that was called."""
        longest: dict[str, float] = {}
        for call in self.calls:
            longest[call.deployment] = max(call.seconds, longest.get(call.deployment, 0.0))
        return longest

    def fail(self, code: ErrorCode) -> None:
        """The request ends with this error."""
        self.code = code
