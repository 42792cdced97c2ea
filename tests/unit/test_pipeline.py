"""The joints of one request: every way to an answer of ours, and every word that goes out with a forwarded one."""

from __future__ import annotations

import asyncio
import gzip
import itertools

import orjson
import pytest

from router.observe import Metrics
from router.pipeline import LARGE_BODY, Pipeline
from router.questions import Answer, NoulAnswer, Unknown, UnknownReason
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
