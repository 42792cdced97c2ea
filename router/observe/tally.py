"""Counters and histograms that cost next to nothing to count: what stands on every request's path.

The client library locks for each number, and takes three locks for an observation. These are for the one thread of the
event loop, and become families of the library when a scrape asks for them; other threads only read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString


class Tally:
    """A number that grows; that of a gauge may fall."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def inc(self, amount: int = 1) -> None:
        """Add `amount`."""
        self.value += amount


class Tallies(Collector):
    """The series of one counter, or gauge. `name` is without `_total`."""

    def __init__(
        self, name: str, documentation: str, labels: Sequence[str], registry: CollectorRegistry, *, gauge: bool = False
    ) -> None:
        self._name = name
        self._documentation = documentation
        self._labels = tuple(labels)
        self._family = GaugeMetricFamily if gauge else CounterMetricFamily
        self._series: dict[tuple[str, ...], Tally] = {}
        if not labels:
            self.labels()
        registry.register(self)

    def labels(self, *values: str) -> Tally:
        """The series with these values, which begins at 0."""
        if len(values) != len(self._labels):
            raise ValueError(f"{self._name} has the labels {', '.join(self._labels)}")
        return self._series.setdefault(tuple(map(str, values)), Tally())

    def describe(self) -> Iterator[Metric]:
        """The family without its series."""
        yield self._family(self._name, self._documentation, labels=self._labels)

    def collect(self) -> Iterator[Metric]:
        """The family as it stands."""
        family = self._family(self._name, self._documentation, labels=self._labels)
        for values, tally in tuple(self._series.items()):
            family.add_metric(values, tally.value)
        yield family


class Distribution(Collector):
    """A histogram without labels. `buckets` are upper bounds, ascending; one without a bound is added."""

    def __init__(self, name: str, documentation: str, buckets: Sequence[float], registry: CollectorRegistry) -> None:
        self._name = name
        self._documentation = documentation
        self._bounds = tuple(map(float, buckets))
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0
        registry.register(self)

    def observe(self, value: float) -> None:
        """Count `value`."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def describe(self) -> Iterator[Metric]:
        """The family without its series."""
        yield HistogramMetricFamily(self._name, self._documentation)

    def collect(self) -> Iterator[Metric]:
        """The family as it stands."""
        family = HistogramMetricFamily(self._name, self._documentation)
        below, buckets = 0, []
        for bound, count in zip((*self._bounds, float("inf")), tuple(self._counts), strict=True):
            below += count
            buckets.append((floatToGoString(bound), float(below)))  # type: ignore[no-untyped-call]
        family.add_metric((), buckets, self._sum)
        yield family
