"""Prometheus families of the router.

Every label value comes from a closed set: enums of ours, or names in the loaded configuration, so that a client can
never create a series. Children are looked up once and kept, because `labels()` costs more than the increment. Names
follow the documents' tables (`llm_*`, `vsr_*`); what they do not name is `pointsman_*`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from router.observe.asking_metrics import AskingMetrics
from router.observe.call_metrics import CallMetrics
from router.observe.overload_metrics import OverloadMetrics
from router.observe.scan_metrics import ScanMetrics
from router.observe.tally import Distribution, Tallies

_ROUTING_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

RELOAD_OUTCOMES = ("ok", "invalid", "restart_required", "failed")


class Metrics:
    """The families, bound to one registry."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self._requests = Tallies(
            "pointsman_requests", "Requests seen, by kind of path and wire format.", ["kind", "format"], self.registry
        )
        self._errors = Counter(
            "llm_request_errors", "Requests answered with an error by the router.", ["reason"], registry=self.registry
        )
        self._models = Tallies("llm_model_requests", "Requests forwarded, by provider model.", ["model"], self.registry)
        self._decisions = Tallies("llm_decision_match", "Decisions selected.", ["recipe", "decision"], self.registry)
        self._signals = Tallies("llm_signal_match", "Rules that matched.", ["recipe", "signal"], self.registry)
        self._selections = Tallies(
            "llm_model_selection",
            "Candidates that decisions came to, by the algorithm that picked them.",
            ["recipe", "decision", "algorithm", "model"],
            self.registry,
        )
        self._plugins = Tallies(
            "llm_plugin_execution",
            "Plugins of selected decisions that ran.",
            ["recipe", "decision", "plugin"],
            self.registry,
        )
        self._fallbacks = Counter(
            "pointsman_selector_fallbacks",
            "Requests for which a selector's model gave no choice, so that the first candidate was taken.",
            ["recipe", "decision", "reason"],
            registry=self.registry,
        )
        self.routing_seconds = Distribution(
            "llm_model_routing_latency_seconds",
            "From the last byte of the request's body to the verdict.",
            _ROUTING_BUCKETS,
            self.registry,
        )
        self.evaluation_seconds = Distribution(
            "llm_decision_evaluation_latency_seconds",
            "Projections and rules, without waiting for answers.",
            (0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.005, 0.025),
            self.registry,
        )
        self.signal_seconds = Distribution(
            "llm_signal_extraction_latency_seconds",
            "The request stage's rules: from the first that is computed, or the first call, to the last answer.",
            (0.00005, 0.0001, 0.00025, *_ROUTING_BUCKETS),
            self.registry,
        )
        self._ttft = Histogram(
            "llm_model_ttft_seconds",
            "From the verdict to the headers of an answer that streams, of models whose answers a selector measures.",
            ["model"],
            buckets=_ROUTING_BUCKETS,
            registry=self.registry,
        )
        self._runtime_requests = Tallies(
            "vsr_model_runtime_requests", "Calls to decision models.", ["deployment", "outcome"], self.registry
        )
        self._unknown = Counter(
            "vsr_model_runtime_unknown_answers",
            "Questions left without an answer.",
            ["deployment", "reason"],
            registry=self.registry,
        )
        self._restarts = Counter(
            "vsr_model_runtime_restarts", "Restarts of managed model runtimes.", ["deployment"], registry=self.registry
        )
        self._ready = Gauge(
            "vsr_model_runtime_ready",
            "Whether the deployment has answered a question.",
            ["deployment"],
            registry=self.registry,
        )
        self._reloads = Counter(
            "pointsman_config_reloads", "Attempts to load a changed configuration.", ["outcome"], registry=self.registry
        )
        self.config_ok = Gauge(
            "pointsman_config_last_reload_successful", "1 unless the file on disk was refused.", registry=self.registry
        )
        self.streams = Tallies(
            "pointsman_streams_in_flight", "Open ext_proc streams, one a request.", [], self.registry, gauge=True
        ).labels()
        self._known_ready: set[str] = set()
        self.asking = AskingMetrics(self.registry)
        self.calls = CallMetrics(self.registry)
        self.overload = OverloadMetrics(self.registry)
        self.scans = ScanMetrics(self.registry)
        self.request = cache(self._request)
        self.error = cache(self._error)
        self.forwarded = cache(self._forwarded)
        self.decided = cache(self._decided)
        self.matched = cache(self._matched)
        self.selected = cache(self._selected)
        self.plugin = cache(self._plugin)
        self.ttft = cache(self._ttft_of)
        self.selector_fallback = cache(self._selector_fallback)
        self.runtime_call = cache(self._runtime_call)
        self.unknown_answer = cache(self._unknown_answer)

    # Each returns the bound method to call, so that a hot path pays one dictionary look-up.

    def _request(self, kind: str, wire_format: str) -> Callable[[], None]:
        return self._requests.labels(kind, wire_format).inc

    def _error(self, reason: str) -> Callable[[], None]:
        return self._errors.labels(reason).inc

    def _forwarded(self, model: str) -> Callable[[], None]:
        return self._models.labels(model).inc

    def _decided(self, recipe: str, decision: str) -> Callable[[], None]:
        return self._decisions.labels(recipe, decision).inc

    def _matched(self, recipe: str, signal: str) -> Callable[[], None]:
        return self._signals.labels(recipe, signal).inc

    def _selected(self, recipe: str, decision: str, algorithm: str, model: str) -> Callable[[], None]:
        return self._selections.labels(recipe, decision, algorithm, model).inc

    def _plugin(self, recipe: str, decision: str, plugin: str) -> Callable[[], None]:
        return self._plugins.labels(recipe, decision, plugin).inc

    def _ttft_of(self, model: str) -> Callable[[float], None]:
        return self._ttft.labels(model).observe

    def _selector_fallback(self, recipe: str, decision: str, reason: str) -> Callable[[], None]:
        return self._fallbacks.labels(recipe, decision, reason).inc

    def _runtime_call(self, deployment: str, outcome: str) -> Callable[[], None]:
        return self._runtime_requests.labels(deployment, outcome).inc

    def _unknown_answer(self, deployment: str, reason: str) -> Callable[[], None]:
        return self._unknown.labels(deployment, reason).inc

    def runtimes_ready(self, ready: Mapping[str, bool]) -> None:
        """Publish which deployments answer; those that are not named any more lose their series."""
        for gone in self._known_ready - ready.keys():
            self._ready.remove(gone)
        for name, answers in ready.items():
            self._ready.labels(name).set(answers)
            self._restarts.labels(name)
        self._known_ready = set(ready)

    def runtime_restarted(self, deployment: str) -> None:
        """Count a restart of a managed runtime."""
        self._restarts.labels(deployment).inc()

    def reloaded(self, outcome: str) -> None:
        """Count an attempt to load a changed file; `outcome` is one of `RELOAD_OUTCOMES`."""
        self._reloads.labels(outcome).inc()
        self.config_ok.set(outcome == "ok")

    def prepare(self, deployments: Iterable[str] = ()) -> None:
        """Create the series that a dashboard expects to exist before their first event. The loaded file is in order."""
        self.runtimes_ready(dict.fromkeys(deployments, False))
        self.config_ok.set(1)
        for outcome in RELOAD_OUTCOMES:
            self._reloads.labels(outcome)

    def render(self) -> bytes:
        """The exposition text."""
        return generate_latest(self.registry)
