"""The scan as the documents describe it, case by case."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from router.config.sizes import ScanWindow, scan_window_for
from router.questions import (
    Answer,
    NoulAnswer,
    Predicate,
    QuestionType,
    SetAnswer,
    Span,
    SpanAnswer,
    Unknown,
    UnknownReason,
)
from router.scan.machine import Ask, End, Lane, ScanMachine
from router.scan.pace import DeploymentPace
from router.scan.reading import Input
from router.scan.rules import OnUnscanned, Result, WatchedQuestion, WatchedRule
from tests.support.scan_driving import (
    GUARD,
    Model,
    Reply,
    always,
    drive,
    given,
    guard,
    harmless,
    looking_for,
    never,
    noul,
    zero,
)

SMALL = ScanWindow(1024, 64, 4096, 4, 3.0)
FLAT = ScanWindow(1024, 64, 1024, 4, 3.0)
WORDS = "some words of filler, "


def filler(size: int) -> str:
    """Text in which every place is told from every other."""
    return "".join(f"{number:07d} " for number in range(size // 8 + 1))[:size]


def always_answering(answer: Answer) -> Model:
    return lambda _: (1.0, {"q0": answer})


def place(text: str, ask: Ask) -> int:
    """Where a window begins."""
    return text.index(ask.text)


def end_of(machine: ScanMachine) -> End | None:
    """Asked anew each time."""
    return machine.ended


# Order and parallelism.


def test_tail_then_head_then_the_middle_by_halves() -> None:
    text = filler(8000)
    found = drive(given(text), FLAT)
    starts = [place(text, ask) for ask in found.asks]
    ranks = [sorted(starts).index(start) for start in starts]
    assert ranks == [8, 0, 4, 2, 6, 1, 3, 5, 7]
    assert found.ended is End.READ


def test_orders_differ_between_requests() -> None:
    text = filler(30_000)
    orders = {tuple(drive(given(text), FLAT, randbelow=random.randrange).texts) for _ in range(8)}
    assert len(orders) > 1
    assert len({frozenset(order) for order in orders}) == 1


@pytest.mark.parametrize("parallel", [1, 2, 4, 64])
def test_no_more_windows_in_flight_than_allowed(parallel: int) -> None:
    sizes = ScanWindow(1024, 64, 1024, parallel, 3.0)
    found = drive([given(filler(20_000)), given(filler(9000), name="tools")], sizes)
    assert found.most_in_flight == min(parallel, len(found.asks))


def test_deployments_are_counted_apart() -> None:
    inputs = [given(filler(9000)), Input("user", "other", filler(9000), (noul(guard("other")),))]
    assert drive(inputs, FLAT).most_in_flight == 8


def test_inputs_of_a_request_take_turns() -> None:
    texts = [filler(9000), filler(9000)[::-1]]
    found = drive([given(text, name=str(at)) for at, text in enumerate(texts)], ScanWindow(1024, 64, 1024, 1, 3.0))
    assert [ask.input for ask in found.asks[:6]] == ["0", "1"] * 3


def test_rules_that_read_the_same_input_share_each_windows_call() -> None:
    questions = (noul(guard("a"), guard("b", 0.9)), noul(guard("c"), key="q1"))
    text = filler(5000)
    found = drive(given(text, *questions), FLAT, lambda ask: (1.0, {key: NoulAnswer(0.01) for key in ask.questions}))
    assert len(found.asks) == len(set(found.texts)) == 6
    assert all(ask.questions == ("q0", "q1") for ask in found.asks)
    assert {key: str(each.coverage) for key, each in found.machine.outcomes.items()} == dict.fromkeys("abc", "full")


def test_an_input_of_one_window_may_travel_with_others() -> None:
    found = drive(given("short"), FLAT)
    (ask,) = found.asks
    assert ask.alone
    assert ask.text == "short"
    assert not any(ask.alone for ask in drive(given(filler(5000)), FLAT).asks)


def test_white_space_needs_no_call_and_is_read() -> None:
    text = filler(2000) + " \n" * 4000 + filler(2000)
    found = drive(given(text), FLAT)
    assert not any(ask.text.isspace() for ask in found.asks)
    outcome = found.machine.outcomes["attack"]
    assert str(outcome.coverage) == "full"
    assert len(found.asks) < outcome.coverage.of_windows


# Early end.


@pytest.mark.parametrize("at", range(0, 8000, 400))
def test_an_attack_anywhere_is_found(at: int) -> None:
    text = filler(8000)
    text = text[:at] + "ATTACK" + text[at:]
    found = drive(given(text), FLAT, looking_for("ATTACK"), refuses=always)
    assert found.ended is End.REFUSED
    assert found.machine.refused_by == "attack"
    assert found.machine.outcomes["attack"].result is Result.MATCH


def test_an_attack_in_the_tail_costs_one_window() -> None:
    text = filler(100_000) + "ATTACK"
    found = drive(given(text), ScanWindow(1024, 64, 1024, 1, 3.0), looking_for("ATTACK"), refuses=always)
    assert len(found.asks) == 1
    outcome = found.machine.outcomes["attack"]
    assert outcome.decided
    assert str(outcome.coverage) == f"partial 1/{outcome.coverage.of_windows}"


def test_a_match_that_does_not_refuse_lets_the_other_rules_read_on() -> None:
    questions = (noul(guard("a")), noul(guard("b"), key="q1"))
    asked: list[tuple[str, Mapping[str, Answer]]] = []

    def refuses(rule: str, found: Mapping[str, Answer]) -> bool:
        asked.append((rule, dict(found)))
        return False

    def model(ask: Ask) -> tuple[float, Reply]:
        return 1.0, {key: NoulAnswer(0.9 if key == "q0" else 0.01) for key in ask.questions}

    found = drive(given(filler(8000), *questions), FLAT, model, refuses=refuses)
    assert asked == [("a", {"a": NoulAnswer(0.9)})]
    assert found.ended is End.READ
    # What is decided is not asked again.
    assert [ask.questions for ask in found.asks[4:]] == [("q1",)] * 5
    assert str(found.machine.outcomes["b"].coverage) == "full"
    assert found.machine.outcomes["a"].decided


def test_two_matches_can_refuse_together() -> None:
    questions = (noul(guard("a")), noul(guard("b"), key="q1"))
    text = "ONE " + filler(8000) + " TWO"

    def model(ask: Ask) -> tuple[float, Reply]:
        return 1.0, {"q0": NoulAnswer(float("ONE" in ask.text)), "q1": NoulAnswer(float("TWO" in ask.text))}

    found = drive(given(text, *questions), FLAT, model, refuses=lambda _, matched: len(matched) == 2)
    assert found.ended is End.REFUSED
    assert {each.result for each in found.machine.outcomes.values()} == {Result.MATCH}


def test_what_else_becomes_known_can_end_a_scan() -> None:
    known: list[str] = []
    text = filler(8000) + "ATTACK"
    questions = (noul(guard()), noul(guard("other"), key="q1"))
    lanes = {GUARD: Lane(FLAT, DeploymentPace())}
    machine = ScanMachine([given(text, *questions)], lanes, 45.0, lambda *_: bool(known), zero)
    tail, *_ = machine.start(0.0)
    more = machine.answered(tail.id, {"q0": NoulAnswer(0.99), "q1": NoulAnswer(0.0)}, 1.0)
    assert more
    assert end_of(machine) is None
    known.append("now it refuses")
    assert machine.reconsider(2.0) == []
    assert end_of(machine) is End.REFUSED
    assert machine.outcomes["other"].reason is UnknownReason.NOT_ASKED


def test_a_refusal_ends_the_scans_of_every_deployment() -> None:
    text = filler(8000) + "ATTACK"
    inputs = [given(text), Input("user", "other", text, (noul(guard("slow")),))]

    def model(ask: Ask) -> tuple[float, Reply]:
        return (1.0 if ask.deployment == GUARD else 5.0), {"q0": NoulAnswer(float("ATTACK" in ask.text))}

    found = drive(inputs, FLAT, model, refuses=always)
    assert found.now == 1.0
    assert len(found.asks) == 8


def test_nothing_is_sent_after_the_end() -> None:
    lanes = {GUARD: Lane(FLAT, DeploymentPace())}
    machine = ScanMachine([given(filler(20_000))], lanes, 10.0, never, zero)
    asks = machine.start(0.0)
    machine.expire(9.9)
    assert end_of(machine) is None
    machine.expire(10.0)
    assert end_of(machine) is End.DEADLINE
    assert machine.answered(asks[0].id, {"q0": NoulAnswer(0.99)}, 10.0) == []
    assert machine.failed(asks[1].id, UnknownReason.TIMEOUT, 11.0) == []
    assert machine.reconsider(12.0) == []
    assert machine.outcomes["attack"].result is Result.UNKNOWN


def test_an_answer_at_the_last_moment_counts_and_one_after_it_does_not() -> None:
    for late, result in ((10.0, Result.MATCH), (10.001, Result.UNKNOWN)):
        machine = ScanMachine([given(filler(20_000))], {GUARD: Lane(FLAT, DeploymentPace())}, 10.0, never, zero)
        asks = machine.start(0.0)
        assert machine.answered(asks[0].id, {"q0": NoulAnswer(0.99)}, late) == []
        assert machine.ended is not None
        assert machine.outcomes["attack"].result is result


# Second looks.

LARGE = ScanWindow(1024, 64, 4096, 1, 3.0)
LONG = filler(600_000)


@pytest.mark.parametrize(
    ("threshold", "again", "not_again", "at_once", "later"),
    [(0.995, 0.909, 0.907, 0.98, 0.97), (0.88, 0.268, 0.266, 0.63, 0.61), (0.5, 0.048, 0.047, 0.19, 0.18)],
)
def test_near_misses_are_read_again_from_the_documents_numbers(
    threshold: float, again: float, not_again: float, at_once: float, later: float
) -> None:
    def asks(chance: float) -> list[Ask]:
        """The model is nearly sure of the first window of the middle."""
        seen: list[Ask] = []

        def model(ask: Ask) -> tuple[float, Reply]:
            seen.append(ask)
            return 1.0, {"q0": NoulAnswer(chance if len(seen) == 3 else 0.0001)}

        return drive(given(LONG, noul(guard(at=threshold))), LARGE, model).asks

    plain = len(asks(0.0001))
    assert len(asks(not_again)) == plain
    for chance in (again, later, at_once):
        found = asks(chance)
        extra = found[plain:] if chance != at_once else found[3 : 3 + len(found) - plain]
        assert len(found) - plain == 3
        assert all(ask.text in found[2].text and len(ask.text) <= 1024 for ask in extra)
        assert "".join(found[2].text)[-64:] == extra[-1].text[-64:]


def test_a_second_look_that_matches_ends_the_scan_ahead_of_every_window() -> None:
    at = LONG[300_000:300_008]

    def model(ask: Ask) -> tuple[float, Reply]:
        if at not in ask.text:
            return 1.0, {"q0": NoulAnswer(0.001)}
        return 1.0, {"q0": NoulAnswer(0.3 if len(ask.text) > 1024 else 0.9)}

    found = drive(given(LONG), LARGE, model, refuses=always)
    assert found.ended is End.REFUSED
    first = next(number for number, ask in enumerate(found.asks) if at in ask.text)
    assert len(found.asks) - first <= 5
    assert len(found.asks[-1].text) <= 1024


def test_the_further_misses_wait_and_go_nearest_first() -> None:
    chances = {5: 0.07, 9: 0.15, 12: 0.1}

    def model(ask: Ask) -> tuple[float, Reply]:
        number = len(seen)
        seen.append(ask.text)
        return 1.0, {"q0": NoulAnswer(chances.get(number, 0.0001))}

    seen: list[str] = []
    found = drive(given(LONG), LARGE, model)
    planned = len(found.asks) - 9
    assert all(len(ask.text) > 1024 for ask in found.asks[2:planned])
    for number, big in enumerate((9, 12, 5)):
        again = found.asks[planned + 3 * number : planned + 3 * number + 3]
        assert all(ask.text in found.asks[big].text for ask in again)


def test_a_margin_of_zero_reads_nothing_again() -> None:
    sizes = ScanWindow(1024, 64, 4096, 1, 0.0)
    found = drive(given(LONG), sizes, lambda ask: (1.0, {"q0": NoulAnswer(0.49)}))
    assert len(found.asks) == len(set(found.texts)) <= 256
    assert len(found.asks) == found.machine.outcomes["attack"].coverage.of_windows


def test_windows_of_the_configured_size_are_not_read_again() -> None:
    text = filler(20_000)
    found = drive(given(text), FLAT, lambda ask: (1.0, {"q0": NoulAnswer(0.49)}))
    # All but the last half window, which shares its text with the tail.
    assert len(found.asks) == found.machine.outcomes["attack"].coverage.of_windows + 1


def test_a_tail_that_nearly_matches_has_its_last_half_read_at_once() -> None:
    text = filler(20_000)
    first = ScanWindow(1024, 64, 1024, 1, 3.0)
    found = drive(
        given(text), first, lambda ask: (1.0, {"q0": NoulAnswer(0.05 if text.endswith(ask.text) else 0.0001)})
    )
    assert found.texts[:2] == [text[-1024:], text[-512:]]
    assert text[-512:] not in found.texts[2:]
    found = drive(given(text), first, lambda ask: (1.0, {"q0": NoulAnswer(0.04)}))
    assert text[-512:] not in found.texts


def test_a_diluted_attack_at_the_very_end_is_found_by_the_half_window() -> None:
    text = filler(50_000) + "ATTACK"

    def model(ask: Ask) -> tuple[float, Reply]:
        return 1.0, {"q0": NoulAnswer((0.3 if len(ask.text) > 600 else 0.9) if "ATTACK" in ask.text else 0.001)}

    found = drive(given(text), ScanWindow(1024, 64, 1024, 1, 3.0), model, refuses=always)
    assert found.ended is End.REFUSED
    assert len(found.asks) == 2


@pytest.mark.parametrize(("reason", "unread"), [("timeout", None), ("overloaded", UnknownReason.OVERLOADED)])
def test_a_second_look_that_is_lost_is_told(reason: UnknownReason, unread: UnknownReason | None) -> None:
    """For want of room it leaves the rule unread: the request must come back for it."""

    def model(ask: Ask) -> tuple[float, Reply]:
        seen.append(ask.text)
        if len(ask.text) == 512:
            return 1.0, UnknownReason(reason)
        return 1.0, {"q0": NoulAnswer(0.3 if len(seen) == 1 else 0.0001)}

    seen: list[str] = []
    outcome = drive(given(filler(9000)), FLAT, model).machine.outcomes["attack"]
    assert (outcome.result, str(outcome.coverage), outcome.rereads_left) == (Result.NO_MATCH, "full", 1)
    assert outcome.unread == unread


def test_a_match_elsewhere_calls_second_looks_off() -> None:
    def model(ask: Ask) -> tuple[float, Reply]:
        seen.append(ask.text)
        return 1.0, {"q0": NoulAnswer({3: 0.06, 8: 0.9}.get(len(seen), 0.0001))}

    seen: list[str] = []
    found = drive(given(LONG, noul(guard(whole=True))), LARGE, model)
    assert len(found.asks) == found.machine.outcomes["attack"].coverage.of_windows


# Sets, spans, several types at once.


def test_a_set_is_the_union_of_all_windows() -> None:
    question = WatchedQuestion(
        "q0", QuestionType.SET, (WatchedRule("hazards", labels=frozenset({"weapons"}), whole=True),)
    )
    text = "GUN " + filler(6000) + " SLUR"

    def model(ask: Ask) -> tuple[float, Reply]:
        found = {"weapons": float("GUN" in ask.text), "hate": float("SLUR" in ask.text)}
        return 1.0, {"q0": SetAnswer(frozenset(key for key in found if found[key]), found)}

    outcome = drive(given(text, question), FLAT, model).machine.outcomes["hazards"]
    assert outcome.result is Result.MATCH
    assert outcome.answer == SetAnswer(frozenset({"weapons", "hate"}), {"weapons": 1.0, "hate": 1.0})
    assert str(outcome.coverage) == "full"


def spans(ask: Ask) -> tuple[float, Reply]:
    """Finds every MAIL in full, and parts of it at the edges."""
    found = []
    at = ask.text.find("MAIL")
    while at >= 0:
        found.append(Span("EMAIL", at, at + 4, 0.9))
        at = ask.text.find("MAIL", at + 1)
    for cut in (1, 2, 3):
        if ask.text.startswith("MAIL"[cut:]):
            found.append(Span("EMAIL", 0, 4 - cut, 0.8))
        if ask.text.endswith("MAIL"[:cut]):
            found.append(Span("EMAIL", len(ask.text) - cut, len(ask.text), 0.8))
    return 1.0, {"q0": SpanAnswer(tuple(found), max((span.probability for span in found), default=0.0))}


PII = WatchedQuestion("q0", QuestionType.SPAN, (WatchedRule("pii", labels=frozenset({"EMAIL"}), whole=True),))


@pytest.mark.parametrize("between", ["x ", "é ", "漢 ", "😀 ", "e\u0301", "a\r\n", "\x00", "\ud800"])
@pytest.mark.parametrize("offset", [0, 1, 5])
def test_spans_keep_their_places_in_the_whole_input(between: str, offset: int) -> None:
    text = between * offset + (between * 50 + "MAIL") * 60 + between * offset
    found = drive(given(text, PII), FLAT, spans)
    answer = found.machine.outcomes["pii"].answer
    assert isinstance(answer, SpanAnswer)
    assert [text[span.start : span.end] for span in answer.spans] == ["MAIL"] * 60
    assert len(found.asks) > 3


def test_a_label_that_is_allowed_is_no_match() -> None:
    rule = WatchedRule("pii", labels=frozenset({"PHONE"}), whole=True)
    found = drive(given(filler(5000) + "MAIL", WatchedQuestion("q0", QuestionType.SPAN, (rule,))), FLAT, spans)
    assert found.machine.outcomes["pii"].result is Result.NO_MATCH


def test_a_label_can_have_to_be_more_probable_than_the_model_asks() -> None:
    rule = WatchedRule("hazards", Predicate(gte=0.8), frozenset({"weapons"}))
    question = WatchedQuestion("q0", QuestionType.SET, (rule,))
    for chance, result in ((0.7, Result.NO_MATCH), (0.8, Result.MATCH)):
        answer = SetAnswer(frozenset({"weapons", "hate"}), {"weapons": chance, "hate": 1.0})
        found = drive(given(filler(3000), question), FLAT, always_answering(answer))
        assert found.machine.outcomes["hazards"].result is result


def test_an_empty_input_is_read() -> None:
    found = drive(given(""), FLAT)
    assert (found.asks, found.ended) == ([], End.READ)
    assert found.machine.outcomes["attack"].result is Result.NO_MATCH


def test_a_probability_that_must_be_low_is_known_only_at_the_end() -> None:
    rule = WatchedRule("calm", Predicate(lt=0.5))
    text = filler(9000)
    assert drive(given(text, noul(rule)), FLAT).machine.outcomes["calm"].result is Result.MATCH
    found = drive(given(text, noul(rule)), FLAT, looking_for(text[4000:4016]), refuses=always)
    assert found.machine.outcomes["calm"].result is Result.NO_MATCH
    assert found.ended is End.READ


@pytest.mark.parametrize("kind", [QuestionType.CHOICE, QuestionType.SCORE])
def test_a_choice_cannot_be_read_in_windows(kind: QuestionType) -> None:
    with pytest.raises(ValueError, match="cannot be answered window by window"):
        drive(given("text", WatchedQuestion("q0", kind, (guard(),))), FLAT)


# Failures and coverage.


def test_failed_windows_are_unread_and_named() -> None:
    text = filler(8000)

    def model(ask: Ask) -> tuple[float, Reply]:
        if place(text, ask) in (0, 3840):
            return 1.0, UnknownReason.UNAVAILABLE
        return harmless(ask)

    found = drive(given(text), FLAT, model)
    outcome = found.machine.outcomes["attack"]
    assert found.ended is End.READ
    assert str(outcome.coverage) == "partial 7/9"
    assert outcome.result is Result.NO_MATCH
    unread = sum(end - start for start, end in outcome.coverage.unread)
    assert outcome.coverage.bytes + unread == outcome.coverage.of_bytes == 8000
    assert outcome.coverage.unread == ((0, 960), (3840 + 64, 3840 + 960))
    assert (outcome.reason, outcome.unread) == (None, UnknownReason.UNAVAILABLE)


@pytest.mark.parametrize(
    ("on_unscanned", "result"),
    [
        ("best_effort", Result.NO_MATCH),
        ("match", Result.MATCH),
        ("no_match", Result.NO_MATCH),
        ("unknown", Result.UNKNOWN),
    ],
)
def test_what_a_deadline_leaves_unread(on_unscanned: OnUnscanned, result: Result) -> None:
    found = drive(given(filler(20_000), noul(guard(on_unscanned=on_unscanned))), FLAT, deadline=3.5)
    outcome = found.machine.outcomes["attack"]
    assert found.ended is End.DEADLINE
    assert str(outcome.coverage) == "partial 12/21"
    assert outcome.result is result
    assert outcome.by_policy is (on_unscanned != "best_effort")
    assert (outcome.reason is UnknownReason.TIMEOUT) is (result is Result.UNKNOWN)


@pytest.mark.parametrize("on_unscanned", ["best_effort", "match", "no_match", "unknown"])
def test_on_unscanned_does_not_speak_for_an_input_of_which_nothing_was_read(on_unscanned: OnUnscanned) -> None:
    rules = noul(guard(on_unscanned=on_unscanned))
    outcome = drive(given(filler(20_000), rules), FLAT, deadline=0.5).machine.outcomes["attack"]
    assert (outcome.result, outcome.reason, str(outcome.coverage)) == (Result.UNKNOWN, UnknownReason.TIMEOUT, "none")
    down = drive(given(filler(20_000), rules), FLAT, lambda _: (1.0, UnknownReason.OVERLOADED))
    outcome = down.machine.outcomes["attack"]
    assert (outcome.result, outcome.reason, str(outcome.coverage)) == (Result.UNKNOWN, UnknownReason.OVERLOADED, "none")


@pytest.mark.parametrize(("least", "result"), [(0.5, Result.NO_MATCH), (0.58, Result.UNKNOWN), (1.0, Result.UNKNOWN)])
def test_min_coverage(least: float, result: Result) -> None:
    found = drive(given(filler(20_000), noul(guard(min_coverage=least))), FLAT, deadline=3.5)
    outcome = found.machine.outcomes["attack"]
    assert outcome.coverage.share == 12 / 21
    assert outcome.result is result
    matched = drive(given(filler(20_000), noul(guard(min_coverage=1.0))), FLAT, looking_for("0000000"), deadline=3.5)
    assert matched.machine.outcomes["attack"].result is Result.MATCH


def test_a_question_can_fail_alone() -> None:
    questions = (noul(guard("a")), noul(guard("b"), key="q1"))
    replies: list[Reply] = [
        {"q0": NoulAnswer(0.1), "q1": Unknown(UnknownReason.INVALID_ANSWER)},
        {"q0": NoulAnswer(0.1)},
        {"q0": NoulAnswer(0.1), "q1": SpanAnswer((), 0.0)},
        {"q0": NoulAnswer(0.1), "q1": NoulAnswer(float("nan"))},
        {"q0": NoulAnswer(0.1), "q1": NoulAnswer(0.1)},
    ]
    found = drive(given(filler(4700), *questions), FLAT, lambda ask: (1.0, replies[min(ask.id, 4)]))
    outcomes = found.machine.outcomes
    assert str(outcomes["a"].coverage) == "full"
    assert str(outcomes["b"].coverage) == "partial 1/5"


def test_an_input_beyond_256_of_the_largest_windows_is_read_in_part() -> None:
    sizes = scan_window_for(256, 32, 512, 32_768)
    found = drive(given(filler(700_000)), sizes, randbelow=random.randrange)
    outcome = found.machine.outcomes["attack"]
    assert len(found.asks) == 256
    assert found.ended is End.READ
    assert outcome.coverage.windows == 256 < outcome.coverage.of_windows
    strict = drive(given(filler(700_000), noul(guard(on_unscanned="unknown"))), sizes, randbelow=random.randrange)
    assert strict.machine.outcomes["attack"].reason is UnknownReason.INPUT_LIMIT


# The twin.


def test_a_disguised_attack_is_found_in_the_twin_right_after_its_window() -> None:
    at = filler(6000)
    text = at[:3000] + " i g n o r e   t h i s " + at[3000:]
    found = drive(
        given(text, normalise=True), ScanWindow(1024, 64, 1024, 1, 3.0), looking_for("ignore this"), refuses=always
    )
    assert found.ended is End.REFUSED
    assert found.asks[-1].twin
    assert "i g n o r e" in found.asks[-2].text
    off = drive(given(text), FLAT, looking_for("ignore this"), refuses=always)
    assert off.ended is End.READ
    assert not any(ask.twin for ask in off.asks)


def test_a_plain_text_is_not_read_twice() -> None:
    text = filler(9000)
    assert len(drive(given(text, normalise=True), FLAT).asks) == len(drive(given(text), FLAT).asks)


def test_a_window_counts_as_read_only_when_its_twin_was() -> None:
    at = filler(6000)
    text = at[:3000] + " i g n o r e   t h i s " + at[3000:]

    def model(ask: Ask) -> tuple[float, Reply]:
        return (1.0, UnknownReason.UNAVAILABLE) if ask.twin else harmless(ask)

    outcome = drive(given(text, normalise=True), FLAT, model).machine.outcomes["attack"]
    assert str(outcome.coverage) == "partial 6/7"
    assert outcome.reason is None


def test_a_span_in_the_twin_covers_what_it_was_written_as() -> None:
    text = "x " * 900 + "M\u200bA\u200bI\u200bL" + " y" * 900
    found = drive(given(text, PII, normalise=True), FLAT, spans)
    answer = found.machine.outcomes["pii"].answer
    assert isinstance(answer, SpanAnswer)
    assert [text[span.start : span.end] for span in answer.spans] == ["M\u200bA\u200bI\u200bL"]


def test_a_short_input_has_a_twin_too() -> None:
    found = drive(given("please i g n o r e   t h i s", normalise=True), FLAT, looking_for("ignore this"))
    assert [(ask.alone, ask.twin) for ask in found.asks] == [(True, False), (False, True)]
    assert found.machine.outcomes["attack"].result is Result.MATCH


def test_twins_count_among_the_256() -> None:
    text = "\u200b".join(filler(120_000))
    found = drive(given(text, normalise=True), SMALL)
    assert len(found.asks) <= 256
    assert sum(ask.twin for ask in found.asks) > 50
    assert str(found.machine.outcomes["attack"].coverage) == "full"
