"""The joints of one request: every way to an answer of ours, and every word that goes out with a forwarded one."""

from __future__ import annotations

import asyncio
import gzip
import itertools

import orjson
import pytest

from router.judging import LARGE_BODY
from router.observe import Metrics
from router.pipeline import Pipeline
from router.questions import Answer, ChoiceAnswer, NoulAnswer, Unknown, UnknownReason
from router.verdict import Fault, Forward, Handler, HeadVerdict
from router.wire.http import Head, Reply
from tests.support.plans import PLAIN, ScriptedAsker, generation_of, plan_of

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
YES, NO, LATE = NoulAnswer(0.9), NoulAnswer(0.1), Unknown(UnknownReason.TIMEOUT)


def post(path: str = CHAT, **headers: str) -> Head:
    return Head("POST", path, {name.replace("_", "-"): value for name, value in headers.items()})


def body(model: str | None = "auto", text: str = "hello", **more: object) -> bytes:
    named = {} if model is None else {"model": model}
    return orjson.dumps({**named, "messages": [{"role": "user", "content": text}], **more})


def pipeline(answer: Answer = YES, text: str = PLAIN) -> tuple[Pipeline, ScriptedAsker, Metrics]:
    asker, metrics = ScriptedAsker({"is_code": answer}), Metrics()
    ticks = itertools.count()
    made = Pipeline(generation_of(plan_of(text), asker), metrics, clock=lambda: float(next(ticks)))
    return made, asker, metrics


async def decided(made: Handler, head: Head, data: bytes) -> Reply | Forward:
    """The verdict, whether it came at once or not."""
    verdict = made.on_request(head, data)
    return verdict if isinstance(verdict, Reply | Forward) else await verdict


def value(metrics: Metrics, series: str) -> float:
    found = [line for line in metrics.render().decode().splitlines() if line.startswith(series)]
    return float(found[0].rsplit(" ", 1)[1]) if found else 0.0


def code(reply: Reply | Forward | HeadVerdict) -> str:
    assert isinstance(reply, Reply)
    return str(orjson.loads(reply.body)["error"]["code"])


class TestHead:
    def test_model_traffic_needs_its_body(self) -> None:
        made, _, metrics = pipeline()
        assert made.on_head(post()) is HeadVerdict.NEED_BODY
        assert value(metrics, 'pointsman_requests_total{format="chat",kind="llm"}') == 1

    def test_other_traffic_passes(self) -> None:
        made, _, metrics = pipeline()
        assert made.on_head(Head("GET", "/favicon.ico")) is HeadVerdict.PASS_THROUGH
        assert value(metrics, 'pointsman_requests_total{format="none",kind="other"}') == 1

    def test_nothing_is_decided_before_the_models_have_answered(self) -> None:
        made, _, metrics = pipeline()
        made.ready = False
        reply = made.on_head(post(MESSAGES))
        assert isinstance(reply, Reply)
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert orjson.loads(reply.body)["error"]["type"] == "api_error"
        assert value(metrics, 'llm_request_errors_total{reason="unavailable"}') == 1
        assert made.on_head(Head("GET", "/favicon.ico")) is HeadVerdict.PASS_THROUGH
        made.ready = True
        assert made.on_head(post()) is HeadVerdict.NEED_BODY

    def test_models_are_listed_entrypoints_first(self) -> None:
        reply = pipeline()[0].on_head(Head("GET", "/v1/models"))
        assert isinstance(reply, Reply)
        listed = [model["id"] for model in orjson.loads(reply.body)["data"]]
        assert listed == ["auto", "strict", "fixed", "coder", "general", "claude"]

    def test_an_unknown_model_path_is_refused_in_the_clients_format(self) -> None:
        made, _, metrics = pipeline()
        reply = made.on_head(post("/v1/embeddings"))
        assert isinstance(reply, Reply)
        assert (reply.status, code(reply)) == (404, "unknown_path")
        assert value(metrics, 'llm_request_errors_total{reason="unknown_path"}') == 1

    @pytest.mark.parametrize(("path", "served_at"), [("/chat/completions", ""), ("/api/v4/responses", "/api/v4")])
    def test_a_backends_own_path_is_no_way_round(self, path: str, served_at: str) -> None:
        text = PLAIN.replace("9101/v1", f"9101{served_at}")
        text = text.replace("providers:", "providers:\n  defaults: {model: coder}")
        assert code(pipeline(text=text)[0].on_head(post(path))) == "unknown_path"
        assert pipeline(text=text)[0].on_head(Head("GET", path)) is HeadVerdict.PASS_THROUGH
        assert pipeline()[0].on_head(post(path)) is HeadVerdict.PASS_THROUGH

    def test_an_unknown_coding_is_refused_before_the_body(self) -> None:
        reply = pipeline()[0].on_head(post(content_encoding="compress"))
        assert isinstance(reply, Reply)
        assert (reply.status, code(reply)) == (415, "unsupported_encoding")


class TestAtOnce:
    def test_what_waits_for_nothing_is_decided_without_a_coroutine(self) -> None:
        made = pipeline()[0]
        assert isinstance(made.on_request(post(), body("fixed")), Forward)
        assert isinstance(made.on_request(post(), body("general")), Forward)
        assert isinstance(made.on_request(post(), b"{"), Reply)

    async def test_a_large_body_is_read_aside(self) -> None:
        verdict = pipeline()[0].on_request(post(), body("fixed", "x" * LARGE_BODY))
        assert not isinstance(verdict, Reply | Forward)
        assert isinstance(await verdict, Forward)


class TestErrors:
    @pytest.mark.parametrize(
        ("data", "answer", "status", "expected"),
        [
            (b"{", YES, 400, "invalid_json"),
            (b'{"model":"a","model":"b","messages":[]}', YES, 400, "duplicate_key"),
            (b'{"model":"auto","messages":3}', YES, 400, "invalid_request"),
            (body("nobody"), YES, 400, "model_not_found"),
            (body("auto"), NO, 400, "no_route"),
            (body("auto"), LATE, 400, "no_route"),
            (body("strict"), LATE, 503, "decision_unresolved"),
            (body("claude"), YES, 503, "no_eligible_model"),
        ],
    )
    async def test_each_is_told_and_counted(self, data: bytes, answer: Answer, status: int, expected: str) -> None:
        made, _, metrics = pipeline(answer)
        reply = await decided(made, post(), data)
        assert code(reply) == expected
        assert isinstance(reply, Reply)
        assert reply.status == status
        assert value(metrics, f'llm_request_errors_total{{reason="{expected}"}}') == 1
        assert value(metrics, "llm_model_requests_total") == 0

    async def test_a_recipe_whose_candidates_speak_another_format(self) -> None:
        reply = await decided(pipeline()[0], post(MESSAGES), body("fixed", max_tokens=10))
        assert isinstance(reply, Reply)
        assert orjson.loads(reply.body)["type"] == "error"

    async def test_no_model_and_no_default_entrypoint(self) -> None:
        made = pipeline(text=PLAIN.replace(", default: true", ""))[0]
        assert code(await decided(made, post(), body(None))) == "model_required"

    @pytest.mark.parametrize("fault", list(Fault))
    def test_every_fault_has_an_answer(self, fault: Fault) -> None:
        made, _, metrics = pipeline()
        reply = made.fault(post(MESSAGES), fault)
        assert reply.status >= 400
        assert orjson.loads(reply.body)["type"] == "error"
        assert value(metrics, "llm_request_errors_total") == 1

    async def test_a_bomb_stops_at_the_limit(self) -> None:
        limit = "global: {router: {max_body_bytes: 65536}}\n"
        made = pipeline(text=PLAIN + limit)[0]
        data = gzip.compress(body(text="x" * 70_000))
        assert code(await decided(made, post(content_encoding="gzip"), data)) == "body_too_large"


class TestForwarded:
    async def test_a_decision_is_told_in_headers_and_metadata(self) -> None:
        made, asker, metrics = pipeline()
        verdict = await decided(made, post(), body())
        assert isinstance(verdict, Forward)
        assert verdict.model == "coder"
        assert verdict.set_headers == {"x-selected-model": "coder", "x-vsr-plan": plan_of().revision}
        assert dict(verdict.metadata) == {
            "recipe": "ask",
            "decision": "code",
            "model": "coder",
            "algorithm": "static",
            "confidence": verdict.metadata["confidence"],
            "matched_decision_model": "is_code",
        }
        assert [list(texts.values()) for texts in asker.asked] == [["hello"]]
        assert value(metrics, 'llm_decision_match_total{decision="code",recipe="ask"}') == 1
        assert value(metrics, 'llm_model_requests_total{model="coder"}') == 1

    async def test_only_the_model_name_of_the_body_changes(self) -> None:
        data = b'{ "model" : "auto",\n "messages":[{"role":"user","content":"\\u00e4"}] }'
        verdict = await decided(pipeline()[0], post(), data)
        assert isinstance(verdict, Forward)
        assert verdict.body == data.replace(b'"auto"', b'"qwen3-coder"')
        assert verdict.remove_headers == ()

    async def test_a_body_that_need_not_change_goes_on_as_it_came(self) -> None:
        verdict = await decided(pipeline()[0], post(content_encoding="gzip"), gzip.compress(body("general")))
        assert isinstance(verdict, Forward)
        assert (verdict.body, verdict.remove_headers) == (None, ())
        assert dict(verdict.metadata) == {"model": "general"}

    async def test_a_compressed_body_that_changes_goes_on_plain(self) -> None:
        verdict = await decided(pipeline()[0], post(content_encoding="gzip"), gzip.compress(body()))
        assert isinstance(verdict, Forward)
        assert verdict.body == body("qwen3-coder")
        assert verdict.remove_headers == ("content-encoding",)

    async def test_no_model_means_the_default_entrypoint(self) -> None:
        verdict = await decided(pipeline()[0], post(), body(None))
        assert isinstance(verdict, Forward)
        assert verdict.body is not None
        assert orjson.loads(verdict.body)["model"] == "qwen3-coder"

    async def test_the_default_model_takes_what_no_decision_does(self) -> None:
        text = PLAIN.replace("providers:\n", "providers:\n  defaults: {model: general}\n")
        verdict = await decided(pipeline(NO, text)[0], post(), body())
        assert isinstance(verdict, Forward)
        assert verdict.model == "general"
        assert "decision" not in verdict.metadata

    async def test_a_recipe_without_questions_asks_nobody(self) -> None:
        made, asker, metrics = pipeline()
        verdict = await decided(made, post(), body("fixed"))
        assert isinstance(verdict, Forward)
        assert (verdict.model, asker.asked) == ("general", [])
        assert value(metrics, 'llm_decision_match_total{decision="all",recipe="fixed"}') == 1

    async def test_an_unnormal_path_is_forwarded_normal(self) -> None:
        verdict = await decided(pipeline()[0], post("//v1/./chat/completions"), body())
        assert isinstance(verdict, Forward)
        assert verdict.set_headers[":path"] == CHAT

    async def test_a_large_body_is_read_beside_the_event_loop(self) -> None:
        data = body(text="x" * LARGE_BODY)
        verdict = await decided(pipeline()[0], post(), data)
        assert isinstance(verdict, Forward)
        assert verdict.body == data.replace(b'"auto"', b'"qwen3-coder"')

    async def test_an_unknown_answer_is_counted_by_its_reason(self) -> None:
        made, _, metrics = pipeline(LATE)
        await decided(made, post(), body("strict"))
        series = 'vsr_model_runtime_unknown_answers_total{deployment="builtin",reason="timeout"}'
        assert value(metrics, series) == 1


class TestChanged:
    PLUGINS = """\
        plugins:
          - {type: system_prompt, configuration: {system_prompt: Be kind.}}
          - {type: request_params, configuration: {max_tokens_limit: 5}}
          - type: header_mutation
            configuration:
              add: [{name: x-a, value: a}, {name: x-sent, value: a}]
              update: [{name: x-b, value: b}]
              delete: [x-c]
"""
    CONFIG = PLAIN.replace(
        "        modelRefs: [{model: general}]\n", "        modelRefs: [{model: general}]\n" + PLUGINS
    )

    async def test_plugins_change_body_and_headers(self) -> None:
        head = post(x_sent="1", x_b="evil")
        verdict = await pipeline(text=self.CONFIG)[0].decided(head, body("fixed", max_tokens=9))
        assert isinstance(verdict, Forward)
        assert verdict.body == (
            b'{"model":"general","messages":[{"role":"system","content":"Be kind."},'
            b'{"role":"user","content":"hello"}],"max_tokens":5}'
        )
        ours = {"x-selected-model": "general", "x-vsr-plan": verdict.set_headers["x-vsr-plan"]}
        assert verdict.set_headers == {"x-a": "a", "x-b": "b", **ours}
        assert verdict.remove_headers == ("x-c",)

    async def test_a_large_body_is_changed_beside_the_event_loop(self) -> None:
        verdict = await pipeline(text=self.CONFIG)[0].decided(post(), body("fixed", "x" * LARGE_BODY))
        assert isinstance(verdict, Forward)
        assert verdict.body is not None
        assert orjson.loads(verdict.body)["messages"][0] == {"role": "system", "content": "Be kind."}


class TestDiagnosed:
    async def test_why_a_decision_was_selected_is_told_behind_the_router(self) -> None:
        text = PLAIN.replace("[{model: coder}]", "[{model: coder}]\n        plugins: [{type: decision_diagnostics}]", 1)
        verdict = await pipeline(text=text)[0].decided(post(), body())
        assert isinstance(verdict, Forward)
        told = verdict.structs["vllm.semantic_router"]["decision_diagnostics"]
        rule = {"key": "systemone:is_code", "type": "systemone", "name": "is_code", "executed": True, "matched": True}
        assert told == {
            "schemaVersion": 1,
            "decision": "code",
            "selectedModel": "coder",
            "selectionAlgorithm": "static",
            "decisionConfidence": 0.9,
            "matchedRules": ["is_code"],
            "signals": [{**rule, "value": 0.9, "confidence": 0.9}],
            "projections": [],
            "truncated": False,
        }

    async def test_nothing_is_told_without_the_plugin(self) -> None:
        verdict = await pipeline()[0].decided(post(), body())
        assert isinstance(verdict, Forward)
        assert verdict.structs == {}


class TestPicked:
    CONFIG = PLAIN.replace(
        "modelRefs: [{model: general}]",
        "modelRefs: [{model: general, weight: 1}, {model: coder, weight: 3, lora_name: sql, use_reasoning: false}]\n"
        "        algorithm: {type: weighted, session_affinity: false}",
    )

    @pytest.mark.parametrize(
        ("draw", "model", "expected"),
        [
            (0.2, "general", body("general")),
            (0.3, "coder", b'{"reasoning_effort":"none","model":"sql",' + body(None)[1:]),
        ],
    )
    async def test_by_weight(self, draw: float, model: str, expected: bytes) -> None:
        made = Pipeline(generation_of(plan_of(self.CONFIG)), Metrics(), draw=lambda: draw)
        verdict = await made.decided(post(), body("fixed"))
        assert isinstance(verdict, Forward)
        assert (verdict.model, verdict.body) == (model, expected)
        assert (verdict.metadata["algorithm"], verdict.metadata["model"]) == ("weighted", model)

    ASKING = PLAIN.replace(
        "modelRefs: [{model: general}]",
        "modelRefs: [{model: claude}, {model: general}, {model: coder}]\n"
        "        algorithm: {type: systemone, systemone: {candidates: {coder: Writes code.}}}",
    )

    @pytest.mark.parametrize(
        ("answer", "model", "fallbacks"),
        [
            (ChoiceAnswer("coder", {"coder": 0.8, "general": 0.2}, 0.8), "coder", {}),
            (ChoiceAnswer("claude", {"claude": 1.0}, 1.0), "general", {"invalid_answer": 1}),
            (LATE, "general", {"timeout": 1}),
            (YES, "general", {"not_asked": 1}),
        ],
    )
    async def test_by_a_question(self, answer: Answer, model: str, fallbacks: dict[str, int]) -> None:
        asker, metrics = ScriptedAsker({"selector": answer}), Metrics()
        made = Pipeline(generation_of(plan_of(self.ASKING), asker), metrics)
        verdict = await made.decided(post(), body("fixed"))
        assert isinstance(verdict, Forward)
        assert (verdict.model, verdict.metadata["algorithm"]) == (model, "systemone")
        assert [list(texts.values()) for texts in asker.asked] == [["hello"]]
        for reason in ("invalid_answer", "timeout", "not_asked"):
            series = f'pointsman_selector_fallbacks_total{{decision="all",reason="{reason}",recipe="fixed"}}'
            assert value(metrics, series) == fallbacks.get(reason, 0)

    async def test_a_lone_candidate_of_a_format_is_not_asked_about(self) -> None:
        asker = ScriptedAsker({})
        made = Pipeline(generation_of(plan_of(self.ASKING), asker), Metrics())
        verdict = await made.decided(post(MESSAGES), body("fixed", max_tokens=9))
        assert isinstance(verdict, Forward)
        assert (verdict.model, asker.asked) == ("claude", [])

    async def test_a_conversation_keeps_its_model(self) -> None:
        asker = ScriptedAsker({"selector": ChoiceAnswer("coder", {"coder": 0.8, "general": 0.2}, 0.8)})
        made = Pipeline(generation_of(plan_of(self.ASKING), asker), Metrics())
        turns = [{"role": "user", "content": "hello"}]
        for asked in (1, 1, 1):
            verdict = await made.decided(post(), orjson.dumps({"model": "fixed", "messages": turns}))
            assert isinstance(verdict, Forward)
            assert (verdict.model, len(asker.asked)) == ("coder", asked)
            turns += [{"role": "assistant", "content": "Hm."}, {"role": "user", "content": "More."}]
        await made.decided(post(), body("fixed", "another"))
        await made.decided(post(x_session_id="1"), body("fixed"))
        await made.decided(post(x_session_id="1"), body("fixed", "anything"))
        assert len(asker.asked) == 3

    async def test_unless_it_is_configured_otherwise(self) -> None:
        text = self.ASKING.replace("algorithm: {", "algorithm: {session_affinity: false, ")
        asker = ScriptedAsker({"selector": ChoiceAnswer("coder", {"coder": 0.8, "general": 0.2}, 0.8)})
        made = Pipeline(generation_of(plan_of(text), asker), Metrics())
        for _ in range(2):
            await made.decided(post(), body("fixed"))
        assert len(asker.asked) == 2


class TestAnswered:
    CLOSED = PLAIN.replace(
        "modelRefs: [{model: coder}]", "plugins: [{type: fast_response, configuration: {message: Not here.}}]", 1
    )

    @pytest.mark.parametrize("stream", [False, True])
    async def test_a_fast_response_is_told_by_its_headers(self, stream: bool) -> None:
        made, _, metrics = pipeline(text=self.CLOSED)
        reply = await made.decided(post(), body(stream=stream))
        assert isinstance(reply, Reply)
        assert reply.status == 200
        headers = dict(reply.headers)
        assert headers.pop("content-type") == ("text/event-stream" if stream else "application/json")
        headers.pop("cache-control", None)
        confidence = headers.pop("x-vsr-selected-confidence")
        assert float(confidence) == 0.9
        assert headers == {
            "x-vsr-fast-response": "true",
            "x-vsr-response-path": "fast_response",
            "x-vsr-schema-version": "2",
            "x-vsr-selected-recipe": "ask",
            "x-vsr-selected-decision": "code",
        }
        assert b"Not here." in reply.body
        assert value(metrics, 'llm_decision_match_total{decision="code",recipe="ask"}') == 1
        assert value(metrics, "llm_model_requests_total") == 0
        assert value(metrics, "llm_request_errors_total") == 0


class TestSwap:
    async def test_a_stream_stays_on_the_generation_that_it_began_with(self) -> None:
        made, _, _ = pipeline()
        with made.session() as early:
            assert early.on_head(post()) is HeadVerdict.NEED_BODY
            changed = generation_of(plan_of(PLAIN.replace("qwen3-coder", "other")), ScriptedAsker({"is_code": YES}))
            old = made.swap(changed)
            with made.session() as late:
                first, second = [await decided(each, post(), body()) for each in (early, late)]
            waiting = asyncio.ensure_future(old.idle())
            await asyncio.sleep(0)
            assert not waiting.done()
        await waiting
        assert isinstance(first, Forward)
        assert isinstance(second, Forward)
        assert (first.body, second.body) == (body("qwen3-coder"), body("other"))
        assert first.set_headers["x-vsr-plan"] != second.set_headers["x-vsr-plan"]
        await changed.idle()

    async def test_a_stream_that_fails_lets_go_of_its_generation(self) -> None:
        made, _, _ = pipeline()
        with pytest.raises(ZeroDivisionError), made.session():
            raise ZeroDivisionError
        await made.swap(generation_of(plan_of())).idle()
