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


class Spread:
    """How many values fell between which bounds, and their sum."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count `value`."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def cumulated(self) -> list[tuple[str, float]]:
        """How many values were at most each bound, as the library wants it."""
        below, buckets = 0, []
        for bound, count in zip((*self._bounds, float("inf")), tuple(self.counts), strict=True):
            below += count
            buckets.append((floatToGoString(bound), float(below)))  # type: ignore[no-untyped-call]
        return buckets


class Distributions(Collector):
    """The series of one histogram. `buckets` are upper bounds, ascending; one without a bound is added."""

    def __init__(
        self,
        name: str,
        documentation: str,
        labels: Sequence[str],
        buckets: Sequence[float],
        registry: CollectorRegistry,
    ) -> None:
        self._name = name
        self._documentation = documentation
        self._labels = tuple(labels)
        self._bounds = tuple(map(float, buckets))
        self._series: dict[tuple[str, ...], Spread] = {}
        if not labels:
            self.labels()
        registry.register(self)

    def labels(self, *values: str) -> Spread:
        """The series with these values, which begins empty."""
        if len(values) != len(self._labels):
            raise ValueError(f"{self._name} has the labels {', '.join(self._labels)}")
        return self._series.setdefault(tuple(map(str, values)), Spread(self._bounds))

    def describe(self) -> Iterator[Metric]:
        """The family without its series."""
        yield HistogramMetricFamily(self._name, self._documentation, labels=self._labels)

    def collect(self) -> Iterator[Metric]:
        """The family as it stands."""
        family = HistogramMetricFamily(self._name, self._documentation, labels=self._labels)
        for values, spread in tuple(self._series.items()):
            family.add_metric(values, spread.cumulated(), spread.total)
        yield family


class Distribution(Distributions):
    """A histogram without labels."""

    def __init__(self, name: str, documentation: str, buckets: Sequence[float], registry: CollectorRegistry) -> None:
        super().__init__(name, documentation, (), buckets, registry)
        self.observe = self.labels().observe
