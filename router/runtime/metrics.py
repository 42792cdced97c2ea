"""What the runtime counts about itself, in its own registry. Labels are closed sets, never text or ids."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from .asking import Answered, Failure
from .jobs import Dropped
from .texts import TextCache

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class _Lookups(Collector):
    """Reads a cache's own counts when it is scraped."""

    def __init__(self, texts: TextCache) -> None:
        self._texts = texts

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(
            "vllm_srun_text_lookups", "Texts of questions whose vector was known, or not", labels=["outcome"]
        )
        family.add_metric(["hit"], self._texts.hits)
        family.add_metric(["miss"], self._texts.misses)
        yield family


class Metrics:
    """Counters of one runtime process, and the scheduler's observer."""

    def __init__(self, queue: Callable[[], tuple[int, int]]) -> None:
        """`queue` tells how many requests the scheduler holds, and how many tokens of theirs are not computed yet."""
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "vllm_srun_requests", "Requests to answer, by HTTP status", ["status"], registry=self.registry
        )
        self._questions = Counter(
            "vllm_srun_questions", "Questions, by type and outcome", ["type", "outcome"], registry=self.registry
        )
        self._tokens = Counter(
            "vllm_srun_tokens", "Tokens that went through the graph", ["kind"], registry=self.registry
        )
        self._rows = Histogram(
            "vllm_srun_batch_rows", "Rows of a batch", buckets=(1, 2, 4, 8, 16, 32, 64), registry=self.registry
        )
        self._width = Histogram(
            "vllm_srun_batch_tokens",
            "Tokens of a batch, padding included",
            buckets=[2**power for power in range(4, 17)],
            registry=self.registry,
        )
        self._dropped = Counter(
            "vllm_srun_dropped", "Requests that left the queue without an answer", ["reason"], registry=self.registry
        )
        for reason in Dropped:
            self._dropped.labels(reason.value)
        self._compute = Histogram(
            "vllm_srun_batch_seconds", "Time of a batch in the graph", buckets=_SECONDS, registry=self.registry
        )
        self._queue = Histogram(
            "vllm_srun_queue_seconds",
            "Time until a request's first row started",
            buckets=_SECONDS,
            registry=self.registry,
        )
        depth_gauge = Gauge("vllm_srun_queue_depth", "Requests queued or being computed", registry=self.registry)
        depth_gauge.set_function(lambda: float(queue()[0]))
        tokens_gauge = Gauge("vllm_srun_queued_tokens", "Tokens of requests in the queue", registry=self.registry)
        tokens_gauge.set_function(lambda: float(queue()[1]))
        self._ready = Gauge("vllm_srun_ready", "1 when the model has answered its warm-up", registry=self.registry)

    def looks_up(self, texts: TextCache) -> None:
        """Count what is looked up in a cache of texts of questions."""
        self.registry.register(_Lookups(texts))

    def request(self, status: int) -> None:
        """A request was answered."""
        self._requests.labels(str(status)).inc()

    def questions(self, results: Sequence[tuple[str, Answered | Failure]]) -> None:
        """Questions of these types were answered, or failed by code."""
        for kind, result in results:
            self._questions.labels(kind, result.code.value if isinstance(result, Failure) else "answered").inc()

    def batch(self, rows: int, tokens: int, padding: int, seconds: float) -> None:
        """A batch was run (called by the scheduler's worker)."""
        self._rows.observe(rows)
        self._width.observe(tokens + padding)
        self._tokens.labels("real").inc(tokens)
        self._tokens.labels("padding").inc(padding)
        self._compute.observe(seconds)

    def dropped(self, reason: Dropped) -> None:
        """A request was refused, or left the queue before it was whole (from any thread)."""
        self._dropped.labels(reason.value).inc()

    def queued(self, seconds: float) -> None:
        """A request's first row started after this long."""
        self._queue.observe(seconds)

    def ready(self, value: bool) -> None:
        """Whether the model is ready."""
        self._ready.set(float(value))

    def exposition(self) -> bytes:
        """The text that Prometheus scrapes."""
        return generate_latest(self.registry)
