from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from router.observe.tally import Distribution, Tallies


def samples(registry: CollectorRegistry) -> list[object]:
    """What a scrape reads; without when a series began, which these do not say."""
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return [
        (family.name, family.type, family.documentation, sample.name, dict(sample.labels), sample.value)
        for family in families
        for sample in family.samples
        if not sample.name.endswith("_created")
    ]


def test_counters_look_like_the_library_s() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    family = Tallies("a", "Of a.", ["x", "y"], ours)
    reference = Counter("a", "Of a.", ["x", "y"], registry=theirs)
    for labels in (("1", "2"), ("1", "3"), ("1", "2")):
        family.labels(*labels).inc()
        reference.labels(*labels).inc()
    family.labels("unused", "so far")
    reference.labels("unused", "so far")
    assert samples(ours) == samples(theirs)


def test_a_gauge_falls_again() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    gauge = Tallies("a", "Of a.", [], ours, gauge=True).labels()
    reference = Gauge("a", "Of a.", registry=theirs)
    for amount in (1, 1, -1):
        gauge.inc(amount)
        reference.inc(amount)
    assert samples(ours) == samples(theirs)


def test_histograms_look_like_the_library_s() -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    bounds = (0.0001, 0.001, 0.5, 1, 30)
    distribution = Distribution("a_seconds", "Of a.", bounds, ours)
    reference = Histogram("a_seconds", "Of a.", buckets=bounds, registry=theirs)
    assert samples(ours) == samples(theirs)
    for value in (0.0, 0.0001, 0.00011, 0.25, 1, 30, 31):
        distribution.observe(value)
        reference.observe(value)
    assert samples(ours) == samples(theirs)


def test_a_name_is_registered_once() -> None:
    registry = CollectorRegistry()
    Tallies("a", "Of a.", [], registry)
    with pytest.raises(ValueError, match="Duplicated"):
        Tallies("a", "Of a.", [], registry)


def test_labels_are_counted() -> None:
    with pytest.raises(ValueError, match="x, y"):
        Tallies("a", "Of a.", ["x", "y"], CollectorRegistry()).labels("1")
