"""An embedding rule explained: the nearest candidate by its place, the similarity against the threshold, no text."""

from __future__ import annotations

import io
from typing import Any

import orjson

from router.cli.pictures import draw
from router.config.services import DEBUG_HEADER
from router.explaining.answers import answer_record, recorded_answer
from router.explaining.debugging import Debugger
from router.explaining.explanation import Explanation, explain
from router.explaining.notes import Notes
from router.explaining.posed import pose
from router.explaining.preview import as_json
from router.observe import Metrics
from router.pipeline import Pipeline
from router.questions import Answer, SimilarityAnswer, Unknown, UnknownReason
from router.wire.http import Head
from tests.support.plans import PLAIN, ScriptedAsker, generation_of, plan_of

CANARY = "canary-candidate-71"
RULE = "{name: help, threshold: 0.6, candidates: [reset my password, " + CANARY + "]}"
NEAR = (
    PLAIN.replace("[{name: public,", "[{debug: {allow: true}, name: public,")
    .replace(
        "      systemone:\n        - {name: is_code, question: {type: noul, instructions: Is this code?}, "
        "predicate: {gte: 0.7}}\n",
        f"      embeddings: [{RULE}]\n",
        1,
    )
    .replace("{type: systemone, name: is_code}", "{type: embedding, name: help}", 1)
)
CLOSE = SimilarityAnswer((0.2, 0.75))


async def explained(answer: Answer) -> tuple[Explanation, Notes]:
    generation = generation_of(plan_of(NEAR), ScriptedAsker({"embedding:help": answer}))
    notes = Notes()
    posed = pose(orjson.dumps({"model": "auto", "text": "I forgot it"}))
    await Pipeline(generation, Metrics()).decided(posed.head, posed.body, notes=notes)
    return explain(generation.plan, generation.policies["ask"].compiled, notes), notes


async def shown(answer: Answer) -> dict[str, Any]:
    body = orjson.dumps(as_json((await explained(answer))[0], plan_of(NEAR), trace=True))
    assert CANARY not in body.decode()
    return dict(orjson.loads(body))


async def test_a_match() -> None:
    body = await shown(CLOSE)
    (signal,) = body["signals"]
    assert (signal["key"], signal["deployment"], signal["state"]) == ("embedding:help", "builtin", "user")
    assert signal["answer"] == {"best": 1, "similarities": [0.2, 0.75]}
    assert (signal["values"], signal["predicate"], signal["matched"]) == ({"": 0.75}, {"gte": 0.6}, True)
    assert signal["question"]["type"] == "similarity"
    assert body["routing_decision"] == "code"
    assert body["signal_values"] == {"embedding:help": 0.75}


async def test_no_match_and_unknown() -> None:
    assert (await shown(SimilarityAnswer((0.2, 0.5))))["decision_result"]["unmatched_signals"] == ["embedding:help"]
    late = await shown(Unknown(UnknownReason.TIMEOUT))
    assert late["decision_result"]["unknown_signals"] == ["embedding:help"]
    assert late["signal_errors"] == {"embedding:help": "decision_timeout"}
    assert late["signals"][0]["answer"] is None


async def test_the_picture() -> None:
    stream = io.StringIO()
    draw((await explained(CLOSE))[0], stream)
    text = " ".join(stream.getvalue().split())
    assert "0.750, candidate 1" in text
    assert "≥ 0.6" in text
    assert CANARY not in text


async def test_the_debug_headers() -> None:
    _, notes = await explained(CLOSE)
    plan = plan_of(NEAR)
    told = Debugger().seen(plan, Head("POST", "/v1/chat/completions", {DEBUG_HEADER: "true"}), b"", notes)
    assert told["matched_embeddings"] == "help"
    assert orjson.loads(told["trace"])["signals"]["embedding:help"] == [True, 0.75]


def test_a_record_and_back() -> None:
    assert recorded_answer(orjson.loads(orjson.dumps(answer_record(CLOSE)))) == CLOSE
