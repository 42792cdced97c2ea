"""`on_signal_overload` and the router's own admission."""

from __future__ import annotations

import pytest

from router.config.overload import AdmissionSettings, OverloadSettings
from router.config.plan import Plan
from router.config.problems import ConfigError
from tests.support.plans import PLAIN, plan_of


def with_globals(text: str) -> Plan:
    return plan_of(f"{PLAIN}global:\n  {text}\n")


def overload(text: str) -> OverloadSettings:
    return with_globals(f"model_catalog: {{on_signal_overload: {text}}}").overload


def problem(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        with_globals(text)
    (found,) = caught.value.problems
    return f"{found.path}: {found.message}"


class TestOnSignalOverload:
    @pytest.mark.parametrize("plan", [plan_of(), with_globals("model_catalog: {on_signal_overload: {}}")])
    def test_nothing_changes_without_it(self, plan: Plan) -> None:
        assert plan.overload == OverloadSettings("refuse", 2000, 0)

    def test_what_is_written_counts(self) -> None:
        found = overload("{action: retry, wait_ms: 0, retry_after_seconds: 7}")
        assert found == OverloadSettings("retry", 0, 7)

    @pytest.mark.parametrize("written", ["wait_ms: 0", "wait_ms: 60000", "retry_after_seconds: 60"])
    def test_the_ends_of_the_ranges(self, written: str) -> None:
        name, value = written.split(": ")
        assert getattr(overload(f"{{{written}}}"), name) == int(value)

    @pytest.mark.parametrize(
        ("written", "message"),
        [
            ("wait_ms: -1", "must be at least 0"),
            ("wait_ms: 60001", "must be at most 60000"),
            ("wait_ms: 1.5", "must be a whole number"),
            ("retry_after_seconds: -1", "must be at least 0"),
            ("retry_after_seconds: 61", "must be at most 60"),
            ("action: forward", "is not one of"),
            ("wait: 5", "unknown key"),
        ],
    )
    def test_anything_else_is_refused(self, written: str, message: str) -> None:
        found = problem(f"model_catalog: {{on_signal_overload: {{{written}}}}}")
        assert found.startswith("global.model_catalog.on_signal_overload")
        assert message in found

    @pytest.mark.parametrize(
        ("wait_ms", "written", "seconds"),
        [
            (2000, 0, 2),
            (2001, 0, 3),
            (1, 0, 1),
            (0, 0, 1),
            (60_000, 0, 60),
            (2000, 5, 5),
            (60_000, 1, 1),
            (0, 60, 60),
        ],
    )
    def test_when_clients_are_told_to_come_back(self, wait_ms: int, written: int, seconds: int) -> None:
        assert OverloadSettings("retry", wait_ms, written).retry_after_s == seconds


class TestAdmission:
    def test_it_follows_the_memory_unless_written(self) -> None:
        assert plan_of().admission == AdmissionSettings(None, None)
        assert with_globals("router: {admission: {}}").admission == AdmissionSettings(None, None)

    def test_what_is_written_counts(self) -> None:
        found = with_globals("router: {admission: {max_requests: 100, max_buffered_bytes: 33554432}}").admission
        assert found == AdmissionSettings(100, 32 * 1024 * 1024)

    @pytest.mark.parametrize(
        ("written", "message"),
        [("max_requests: 0", "must be at least 1"), ("max_buffered_bytes: 1000", "must be at least 65536")],
    )
    def test_bounds(self, written: str, message: str) -> None:
        assert message in problem(f"router: {{admission: {{{written}}}}}")

    def test_a_request_of_the_largest_size_must_fit(self) -> None:
        found = problem("router: {admission: {max_buffered_bytes: 1048576}}")
        assert found.startswith("global.router.admission.max_buffered_bytes: 1048576 bytes hold no request")
        assert with_globals("router: {max_body_bytes: 1048576, admission: {max_buffered_bytes: 1048576}}")
