"""What is remembered of how models have answered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.acting.latencies import HALF_LIFE_S, Latencies, Record, Times
from router.config.plan import ApiFormat, Backend, ProviderModel


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def model(name: str = "m", host: str = "a", weight: int = 1) -> ProviderModel:
    return ProviderModel(name, ApiFormat.CHAT, name, (Backend("http", host, 80, "", weight, None),))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def latencies(clock: Clock) -> Latencies:
    return Latencies(clock)


class TestTimes:
    @given(st.lists(st.floats(0.002, 900), min_size=1, max_size=200), st.integers(1, 100))
    def test_percentiles_are_near_the_exact_ones(self, seconds: list[float], percent: int) -> None:
        times = Times()
        for one in seconds:
            times.add(one, 0.0)
        rank = max(-(-len(seconds) * percent // 100), 1)
        exact = sorted(seconds)[rank - 1]
        assert times.percentile(percent) == pytest.approx(exact, rel=0.075)

    def test_nothing_is_known_of_nothing(self) -> None:
        assert Times().percentile(50) is None

    @pytest.mark.parametrize("seconds", [0.0, -1.0, 1e9])
    def test_what_is_out_of_range_is_kept_at_its_end(self, seconds: float) -> None:
        times = Times()
        times.add(seconds, 0.0)
        found = times.percentile(50)
        assert found is not None
        assert 0.001 <= found <= 1200

    def test_old_durations_weigh_less(self) -> None:
        times = Times()
        for _ in range(10):
            times.add(10.0, 0.0)
        for _ in range(2):
            times.add(1.0, 5 * HALF_LIFE_S)
        assert times.percentile(60) == pytest.approx(1.0, rel=0.075)

    def test_years_do_not_overflow(self) -> None:
        times = Times()
        for day in range(1000):
            times.add(float(day % 7 + 1), day * 86_400.0)
        assert times.percentile(50) == pytest.approx(float(999 % 7 + 1), rel=0.075)


class TestRecord:
    def test_errors_are_no_fast_answers(self) -> None:
        record = Record()
        record.answered(2.0, 0.0, streaming=False)
        record.failed(0.0)
        now = record.at(0.0)
        assert (now.asked, now.error_rate) == (2, 0.5)
        assert now.response(100) == pytest.approx(2.0, rel=0.075)
        assert now.ttft(50) is None

    def test_what_is_long_past_is_forgotten(self) -> None:
        record = Record()
        for _ in range(5):
            record.answered(2.0, 0.0, streaming=True)
        assert record.at(3 * HALF_LIFE_S).asked == 5
        gone = record.at(4 * HALF_LIFE_S)
        assert (gone.asked, gone.error_rate, gone.ttft(50)) == (0, 0.0, None)

    def test_a_client_in_a_hurry_does_not_make_a_model_fast(self) -> None:
        record = Record()
        record.answered(2.0, 0.0, streaming=True)
        record.abandoned(0.1, 0.0, streaming=True)
        assert record.at(0.0).asked == 1
        record.abandoned(60.0, 0.0, streaming=True)
        assert record.at(0.0).ttft(100) == pytest.approx(60.0, rel=0.075)


class TestAnswering:
    def test_a_whole_answer(self, latencies: Latencies, clock: Clock) -> None:
        watch = latencies.watch(model(), streaming=False)
        assert latencies.measured(model()).in_flight == 0
        watch.sent()
        assert latencies.measured(model()).in_flight == 1
        clock.now += 3
        assert watch.headers(200, {"content-type": "application/json"}) is False
        watch.body(b"", last=True)
        watch.over(left=False)
        now = latencies.measured(model())
        assert (now.in_flight, now.asked) == (0, 1)
        assert now.response(95) == pytest.approx(3.0, rel=0.075)

    def test_an_answer_that_streams(self, latencies: Latencies, clock: Clock) -> None:
        watch = latencies.watch(model(), streaming=True)
        watch.sent()
        clock.now += 0.5
        watch.headers(200, {"content-type": "text/event-stream; charset=utf-8"})
        clock.now += 60
        assert latencies.measured(model()).in_flight == 1
        watch.over(left=False)
        assert latencies.measured(model()).ttft(95) == pytest.approx(0.5, rel=0.075)

    @pytest.mark.parametrize(("status", "counted", "rate"), [(500, 1, 1.0), (429, 1, 1.0), (400, 0, 0.0), (0, 1, 0.0)])
    def test_statuses(self, latencies: Latencies, status: int, counted: int, rate: float) -> None:
        watch = latencies.watch(model(), streaming=False)
        watch.sent()
        watch.headers(status, {})
        watch.over(left=False)
        now = latencies.measured(model())
        assert (now.asked, now.error_rate) == (counted, rate)

    def test_an_answer_that_nobody_waited_for(self, latencies: Latencies, clock: Clock) -> None:
        watch = latencies.watch(model(), streaming=False)
        watch.sent()
        clock.now += 30
        watch.over(left=False)
        assert latencies.measured(model()).response(50) == pytest.approx(30.0, rel=0.075)


class TestLatencies:
    def test_a_model_is_its_name_its_id_and_its_backends(self, latencies: Latencies) -> None:
        latencies.record(model()).failed(1000.0)
        again = ProviderModel("m", ApiFormat.CHAT, "m", model().backends, quality=0.5)
        assert latencies.measured(again).asked == 1
        assert latencies.measured(model(host="b")).asked == 0
        assert latencies.measured(model("n")).asked == 0

    def test_only_so_many_are_remembered(self, clock: Clock) -> None:
        latencies = Latencies(clock, most=2)
        for name in ("a", "b", "a", "c"):
            latencies.record(model(name)).failed(clock.now)
        assert len(latencies) == 2
        assert latencies.measured(model("a")).asked == 2
