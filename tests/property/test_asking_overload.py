"""Whatever models do and whenever requests come: the promises of the overload wait hold."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from router.asking.errors import CallOutcome
from router.asking.overload.gate import LONGEST_STEP_S
from tests.unit.asking.overload_world import OK, REFUSES, Asker, Behaviour, World

MODELS = ("m", "n")
SHORTEST_STEP = 0.1
BIT = 1e-9


@st.composite
def behaviours(draw: st.DrawFn) -> Behaviour:
    """Changes its mind at some moments; between them it answers every so many calls, or none, or fails."""
    times = sorted(draw(st.lists(st.floats(0.0, 4.0), max_size=6)))
    moods = draw(st.lists(st.sampled_from(["refuse", "answer", "some", "fail"]), min_size=7, max_size=7))
    count = Counter[str]()

    def answer(now: float, asker: Asker, call: str) -> CallOutcome:
        mood = moods[sum(time <= now for time in times)]
        if mood == "some":
            count["calls"] += 1
            return OK if count["calls"] % 4 == 0 else REFUSES
        return {"refuse": REFUSES, "answer": OK, "fail": CallOutcome.TIMEOUT}[mood]

    return answer


@st.composite
def worlds(draw: st.DrawFn) -> World:
    processes = draw(st.integers(1, 3))
    world = World(
        {model: draw(behaviours()) for model in MODELS},
        latency=draw(st.sampled_from([0.0, 0.001, 0.05, 0.4])),
        lag=draw(st.sampled_from([0.0, 0.0005, 0.01])),
        processes=processes,
        hold_s=draw(st.sampled_from([0.0, 0.0, 0.3, 20.0])),
        seed=draw(st.integers(0, 9)),
    )
    for _ in range(draw(st.integers(1, 12))):
        world.request(
            draw(st.floats(0.0, 3.0)),
            draw(st.sampled_from([0.0, 0.05, 0.3, 2.0, 5.0])),
            {model: draw(st.sampled_from([0, 1, 2, 8, 9, 20])) for model in MODELS},
            deadline=draw(st.sampled_from([1e9, 2.0, 3.5])),
            process=draw(st.integers(0, processes - 1)),
        )
    world.run()
    return world


@settings(max_examples=100, deadline=None)
@given(worlds())
def test_every_call_that_was_refused_ends_once_and_as_its_last_attempt_did(world: World) -> None:
    refused = {(asker.name, call) for _, asker, call in world.refused_at}
    assert refused == {(asker.name, call) for asker in world.askers for call in asker.settled}
    assert not any(asker.wait.pending for asker in world.askers)


@settings(max_examples=100, deadline=None)
@given(worlds())
def test_rounds_are_few_and_apart_and_nothing_is_asked_after_the_wait(world: World) -> None:
    for asker in world.askers:
        for model in MODELS:
            asked = Counter(call for _, to, calls, probe in asker.asks if to == model and not probe for call in calls)
            assert max(asked.values(), default=0) <= 3
            heads: list[float] = []
            seen: set[str] = set()
            for at, to, calls, probe in asker.asks:
                if to != model or probe:
                    continue
                if not heads or at - heads[-1] >= LONGEST_STEP_S or seen & set(calls):  # else they join that round
                    heads.append(at)
                    seen = set()
                seen |= set(calls)
            assert len(heads) <= 3
            assert all(later - sooner >= SHORTEST_STEP - BIT for sooner, later in pairwise(heads))
        if asker.wait.ends_at is not None:
            assert all(at < asker.wait.ends_at for at, *_ in asker.asks)
            last = max((at for at, asked, *_ in world.called if asked is asker), default=0.0)
            assert max(asker.settled_at.values()) <= max(asker.wait.ends_at, last + world.latency) + BIT


@settings(max_examples=100, deadline=None)
@given(worlds())
def test_a_closed_gate_gives_one_turn_per_step_to_all_processes_together(world: World) -> None:
    for model in MODELS:
        turns = [at - world.lag for at, to, _ in world.turns if to == model]
        assert all(later - sooner >= SHORTEST_STEP - BIT for sooner, later in pairwise(turns))


@settings(max_examples=100, deadline=None)
@given(worlds())
def test_a_probe_is_one_call_of_more_than_eight(world: World) -> None:
    for asker in world.askers:
        for _, model, calls, probe in asker.asks:
            if probe:
                assert len(calls) == 1
                assert len(asker.calls[model]) > 8
