from router.asking.restarts import Restarts


def test_the_first_restart_is_immediate_then_delays_double_to_a_minute() -> None:
    restarts = Restarts()
    assert [restarts.exited(now=0) for _ in range(9)] == [0, 1, 2, 4, 8, 16, 32, 60, 60]
    assert restarts.count == 9


def test_steady_service_forgives() -> None:
    restarts = Restarts()
    for _ in range(5):
        restarts.exited(now=0)
    restarts.ready(now=100)
    restarts.ready(now=125)  # told again: the first time counts
    assert restarts.exited(now=130) == 0
    assert restarts.exited(now=130) == 1


def test_short_service_does_not() -> None:
    restarts = Restarts()
    assert restarts.exited(now=0) == 0
    restarts.ready(now=1)
    assert restarts.exited(now=30.9) == 1
    assert restarts.exited(now=1000) == 2  # it was never ready in between


def test_it_goes_on_for_ever() -> None:
    restarts = Restarts()
    assert [restarts.exited(now=0) for _ in range(3000)][-1] == 60
