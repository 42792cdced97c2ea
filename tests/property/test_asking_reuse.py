"""Whatever is kept, shared or left out of a call, every rule gets the answer to its own question about its own text."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from router.asking.answer_cache import AnswerCache
from router.asking.asker import Asker
from router.asking.line import Line
from router.asking.plan import StateKey
from router.config.deployments import Dialect
from router.config.plan import QuestionRule, StateKind
from router.questions import Answer, NoulAnswer, Unknown, UnknownReason
from tests.unit.asking.asking_builders import deployment, noul, rule, stage

QUESTIONS = ("A?", "B?", "C?")
STATES = (StateKind.USER, StateKind.SYSTEM)
DEADLINE = 10_000_000_000.0


def truth(question: str, text: str) -> float:
    digest = hashlib.sha256(f"{question}\0{text}".encode()).digest()
    return round(digest[0] / 255, 4)


class Truthful:
    """Answers each question about each text with its truth, after letting others run; remembers what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    async def decide(self, body: bytes, timeout_s: float, told: object = None) -> bytes:
        request = orjson.loads(body)
        await asyncio.sleep(0)
        if "input" in request:
            named = {question["name"]: question for question in request["questions"]}
            found = self._answers(request["input"], named)
            answers = [{"name": q, "type": "predicate", "probability": a["noul"]} for q, a in found.items()]
            return orjson.dumps({"answers": answers})
        others = {
            name: {"answers": self._answers(part["state"], part["questions"])}
            for name, part in request.get("states", {}).items()
        }
        return orjson.dumps({"answers": self._answers(request["state"], request["questions"]), "states": others})

    def _answers(self, text: str, questions: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        self.asked += [(question["instructions"], text) for question in questions.values()]
        return {
            name: {"type": "noul", "noul": truth(question["instructions"], text)}
            for name, question in questions.items()
        }


Wanted = list[tuple[str, StateKind]]
REQUESTS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.sampled_from(QUESTIONS), st.sampled_from(STATES)), min_size=1, max_size=4),
        st.fixed_dictionaries(dict.fromkeys(STATES, st.sampled_from(["", "x", "y"]))),
    ),
    min_size=1,
    max_size=5,
)


def rules_of(wanted: Wanted) -> list[QuestionRule]:
    return [rule(f"r{i}", noul(question), state=state, timeout_ms=60_000) for i, (question, state) in enumerate(wanted)]


def expected(wanted: Wanted, texts: Mapping[StateKind, str]) -> dict[str, Answer]:
    return {
        f"r{i}": NoulAnswer(truth(question, texts[state])) if texts[state] else Unknown(UnknownReason.NO_TEXT)
        for i, (question, state) in enumerate(wanted)
    }


@settings(max_examples=120, deadline=None)
@given(REQUESTS, st.sampled_from(Dialect), st.sampled_from([0, 1, 100]), st.booleans())
def test_every_rule_gets_its_own_answer(
    requests: list[tuple[Wanted, dict[StateKind, str]]], dialect: Dialect, kept: int, together: bool
) -> None:
    async def run() -> None:
        model = Truthful()
        asker = Asker({"m": Line(model, cache=AnswerCache(kept))})

        async def one(wanted: Wanted, texts: Mapping[StateKind, str]) -> Mapping[str, Answer]:
            plan = stage(*rules_of(wanted), on=[deployment(dialect=dialect)])
            given_texts: dict[StateKey, str] = {key: texts[key[1]] for key in plan.states}
            return (await asker.ask(plan, given_texts, stage_deadline=DEADLINE)).answers

        if together:
            found = list(await asyncio.gather(*(one(wanted, texts) for wanted, texts in requests)))
        else:
            found = [await one(wanted, texts) for wanted, texts in requests]
        assert found == [expected(wanted, texts) for wanted, texts in requests]
        if kept == 100:
            assert len(model.asked) == len(set(model.asked))

    asyncio.run(run())
