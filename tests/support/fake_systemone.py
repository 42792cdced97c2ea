"""A System One server whose answers, delays, errors and overload the test scripts.

    async with FakeSystemOne() as fake:                 # on a Unix socket; FakeSystemOne(tcp=True) for a port
        fake.answer("Is this code?", 0.9)               # by instructions or preset; see `answer`
        fake.fail(status=429, code="overloaded")        # the next call, or `times=3`, or `times=None` until `heal()`
        client = SystemOneClient(fake.endpoint)
        ...
        assert fake.calls[0].questions == {...}

Unscripted questions get a plain valid answer: noul 0.5, the first option, the lowest level, no label, no span. Answers
may depend on the state: pass a function of its text. `fake.hold()` keeps calls waiting until `fake.release()`, so that
no test has to sleep. `fake.raw(body)` answers the next call with these very bytes. `POST /v1/decisions` answers the
same script in OpenAI's dialect, and `listing = None` is an API that lists nothing.

Run as `python -m tests.support.fake_systemone --uds PATH` it is a process that answers every question plainly.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson
from aiohttp import web

Scripted = Any
"""float (noul, or score), str (choice), mapping of probabilities (choice, set), list (levels or spans), or raw dict."""


@dataclass(slots=True)
class SeenCall:
    """A request as it came, and which connection it came on."""

    body: dict[str, Any]
    connection: int = 0
    authorization: str | None = None
    path: str = "/v1/systemone"

    @property
    def state(self) -> Any:
        return self.body.get("state")

    @property
    def questions(self) -> dict[str, Any]:
        questions = self.body.get("questions", {})
        if isinstance(questions, list):
            return {question["name"]: question for question in questions}
        return dict(questions)

    @property
    def states(self) -> dict[str, Any]:
        return dict(self.body.get("states", {}))

    @property
    def deadline_ms(self) -> int | None:
        deadline: int | None = self.body.get("options", {}).get("deadline_ms")
        return deadline


@dataclass(slots=True)
class _Fault:
    status: int
    body: bytes
    headers: Mapping[str, str]
    times: int | None


@dataclass(slots=True)
class _Script:
    answers: dict[str, Scripted] = field(default_factory=dict)
    faults: deque[_Fault] = field(default_factory=deque)
    drops: int = 0


class FakeSystemOne:
    """The scripted server. `calls` are all decide requests in order; `health` and `listing` are what GETs answer."""

    def __init__(self, *, model: str = "fake", tcp: bool = False, uds: Path | None = None) -> None:
        self.model = model
        self.calls: list[SeenCall] = []
        self.health = 200
        self.timing: str | None = None
        self.listing: dict[str, Any] | None = {"object": "list", "data": [default_card(model)]}
        self.arrived = asyncio.Event()
        self._script = _Script()
        self._open = asyncio.Event()
        self._open.set()
        self._tcp = tcp
        self._uds = uds
        self._dir: tempfile.TemporaryDirectory[str] | None = None
        self._runner: web.AppRunner | None = None
        self.endpoint = ""

    # -- scripting ---------------------------------------------------------------------------------------------------

    def answer(self, about: str, value: Scripted | Callable[[str], Scripted]) -> None:
        """Answer every question whose preset, instructions or id is `about`.

        noul: P(yes). choice: a key, or probabilities. score: a level, or probabilities per level. set: probabilities by
        label. span: [(label, start, end, probability)]. `{"error": code}` fails that question alone. A dict with a
        `type` is sent as it is. A function gets the state's text.
        """
        self._script.answers[about] = value

    def fail(
        self,
        *,
        status: int = 500,
        code: str = "internal_error",
        retry_after: int | None = None,
        times: int | None = 1,
    ) -> None:
        """Refuse the next `times` calls (None: all until `heal`)."""
        body = orjson.dumps({"error": {"code": code, "message": "scripted"}})
        headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
        self._script.faults.append(_Fault(status, body, headers, times))

    def overload(self, *, retry_after: int | None = None, times: int | None = None) -> None:
        """Answer 429 overloaded."""
        self.fail(status=429, code="overloaded", retry_after=retry_after, times=times)

    def raw(self, body: bytes, *, status: int = 200, times: int | None = 1) -> None:
        """Answer the next `times` calls with exactly these bytes."""
        self._script.faults.append(_Fault(status, body, {}, times))

    def drop(self, times: int = 1) -> None:
        """Close the connection of the next `times` calls without a word."""
        self._script.drops += times

    def heal(self) -> None:
        """Forget scripted failures."""
        self._script.faults.clear()
        self._script.drops = 0

    def hold(self) -> None:
        """Keep calls waiting until `release`."""
        self._open.clear()

    def release(self) -> None:
        """Let held calls go on."""
        self._open.set()

    async def wait_for_calls(self, count: int) -> None:
        """Return once `count` decide requests have arrived."""
        while len(self.calls) < count:
            self.arrived.clear()
            await self.arrived.wait()

    # -- serving -----------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> FakeSystemOne:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen. Sets `endpoint`; a restart listens at the same one."""
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/systemone", self._decide)
        app.router.add_post("/v1/decisions", self._decide)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/health", self._health)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        if self._tcp:
            port = int(self.endpoint.rsplit(":", 1)[1]) if self.endpoint else 0
            await web.TCPSite(self._runner, "127.0.0.1", port).start()
            self.endpoint = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
            return
        if self._uds is None:
            self._dir = tempfile.TemporaryDirectory(prefix="fake-s1-")
            self._uds = Path(self._dir.name) / "s"
        await web.UnixSite(self._runner, str(self._uds)).start()
        self.endpoint = f"unix://{self._uds}"

    async def stop(self) -> None:
        """Stop listening; held calls are let go first."""
        self.release()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        if self._dir is not None:
            self._dir.cleanup()
            self._dir, self._uds = None, None

    async def _decide(self, request: web.Request) -> web.StreamResponse:
        body = orjson.loads(await request.read())
        key = request.headers.get("Authorization")
        self.calls.append(SeenCall(body, id(request.transport), key, request.path))
        self.arrived.set()
        await self._open.wait()
        if self._script.drops > 0:
            self._script.drops -= 1
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        fault = self._next_fault()
        if fault is not None:
            return web.Response(
                body=fault.body, status=fault.status, headers=fault.headers, content_type="application/json"
            )
        content = self._respond_openai(body) if request.path == "/v1/decisions" else self._respond(body)
        timing = {} if self.timing is None else {"Server-Timing": self.timing}
        return web.Response(body=orjson.dumps(content), headers=timing, content_type="application/json")

    async def _models(self, _: web.Request) -> web.Response:
        if self.listing is None:
            return web.Response(status=404, text="{}", content_type="application/json")
        return web.Response(body=orjson.dumps(self.listing), content_type="application/json")

    async def _health(self, _: web.Request) -> web.Response:
        return web.Response(status=self.health, text="{}", content_type="application/json")

    def _next_fault(self) -> _Fault | None:
        faults = self._script.faults
        if not faults:
            return None
        fault = faults[0]
        if fault.times is not None:
            fault.times -= 1
            if fault.times <= 0:
                faults.popleft()
        return fault

    def _respond(self, body: dict[str, Any]) -> dict[str, Any]:
        response = {"model": self.model, **self._envelope(body)}
        if "states" in body:
            response["states"] = {
                name: {"model": self.model, **self._envelope(e)} for name, e in body["states"].items()
            }
        return response

    def _respond_openai(self, body: dict[str, Any]) -> dict[str, Any]:
        asked = {q["name"]: _from_openai(q) for q in body["questions"]}
        found = self._envelope({"state": body["input"], "questions": asked})["answers"]
        answers = [{**_to_openai(found[name], asked[name]), "name": name} for name in asked]
        usage = {"input_tokens": 1, "output_tokens": 0, "total_tokens": 1}
        return {"model": self.model, "answers": answers, "usage": usage}

    def _envelope(self, part: Mapping[str, Any]) -> dict[str, Any]:
        state = part["state"]
        text = state if isinstance(state, str) else orjson.dumps(state).decode()
        envelope: dict[str, Any] = {"answers": {}, "usage": {"input_tokens": 1, "output_tokens": 0}}
        for question_id, question in part["questions"].items():
            _write_answer(envelope, question_id, question, self._scripted(question_id, question, text), text)
        return envelope

    def _scripted(self, question_id: str, question: Mapping[str, Any], text: str) -> Scripted:
        for about in (question.get("preset"), question.get("instructions"), question_id):
            if isinstance(about, str) and about in self._script.answers:
                value = self._script.answers[about]
                return value(text) if callable(value) else value
        return None


def default_card(
    model: str, question_types: Sequence[str] = ("noul", "choice", "score", "set", "span")
) -> dict[str, Any]:
    """A model card as `GET /v1/models` lists it."""
    return {
        "id": model,
        "question_types": list(question_types),
        "presets": {"jailbreak": {"type": "noul"}, "domains": {"type": "choice", "labels": ["code", "other"]}},
        "modalities": ["text"],
        "limits": {"max_input_tokens": 32768, "validated_input_tokens": 8192, "max_options": 255, "max_labels": 64},
        "ready": True,
    }


def _write_answer(envelope: dict[str, Any], qid: str, question: Mapping[str, Any], value: Scripted, text: str) -> None:
    kind = question["type"]
    if isinstance(value, dict) and ("error" in value or "type" in value):
        envelope["answers"][qid] = {"type": kind, **value}
    elif kind == "set":
        labels = list(question.get("criteria", {}))
        probabilities = {label: 0.0 for label in labels} | (value or {})
        threshold = question.get("threshold", 0.5)
        selected = [label for label, p in probabilities.items() if p >= threshold]
        envelope.setdefault("sets", {})[qid] = {"selected": selected, "probabilities": probabilities}
    elif kind == "span":
        spans = [_span(item, text) for item in value or ()]
        envelope.setdefault("spans", {})[qid] = spans
        envelope["answers"][qid] = {"type": "noul", "noul": max((s["probability"] for s in spans), default=0.0)}
    else:
        envelope["answers"][qid] = _plain_answer(kind, question.get("criteria"), value)


def _from_openai(question: Mapping[str, Any]) -> dict[str, Any]:
    kind = question["type"]
    asked = {"type": "noul" if kind == "predicate" else kind, "instructions": question["instructions"]}
    if kind == "choice":
        asked["criteria"] = {choice["value"]: choice.get("description") for choice in question["choices"]}
    elif kind == "score":
        asked["criteria"] = [level["label"] for level in question["levels"]]
    return asked


def _to_openai(answer: Mapping[str, Any], question: Mapping[str, Any]) -> dict[str, Any]:
    if "error" in answer:
        return {"type": "refusal"}
    if answer["type"] == "noul":
        return {"type": "predicate", "probability": answer["noul"]}
    entries = answer["probabilities"].items()
    if answer["type"] == "choice":
        probabilities = [{"value": value, "probability": p} for value, p in entries]
    else:
        probabilities = [{"value": int(v), "label": question["criteria"][int(v)], "probability": p} for v, p in entries]
    kept = {key: answer[key] for key in ("type", "choice", "score", "confidence") if key in answer}
    return {**kept, "probabilities": probabilities}


def _plain_answer(kind: str, criteria: Any, value: Scripted) -> dict[str, Any]:
    if kind == "noul":
        return {"type": kind, "noul": 0.5 if value is None else value}
    if kind == "choice":
        keys = list(criteria or ("yes", "no"))
        probabilities = value if isinstance(value, dict) else _peaked(keys, keys[0] if value is None else value)
        chosen = max(probabilities, key=lambda key: probabilities[key])
        return {"type": kind, "choice": chosen, "probabilities": probabilities, "confidence": probabilities[chosen]}
    levels = list(criteria or ("low", "high"))
    by_level = value if isinstance(value, list) else list(_peaked(list(range(len(levels))), value or 0).values())
    return {
        "type": kind,
        "score": sum(i * p for i, p in enumerate(by_level)),
        "probabilities": {str(i): p for i, p in enumerate(by_level)},
        "legend": {str(i): level for i, level in enumerate(levels)},
        "confidence": max(by_level),
    }


def _peaked(keys: list[Any], top: Any) -> dict[Any, float]:
    rest = 0.1 / (len(keys) - 1) if len(keys) > 1 else 0.0
    return {key: (1.0 - rest * (len(keys) - 1)) if key == top else rest for key in keys}


def _span(item: Any, text: str) -> dict[str, Any]:
    label, start, end, probability = item
    return {"label": label, "start": start, "end": end, "text": text[start:end], "probability": probability}


async def _serve(uds: Path) -> None:
    async with FakeSystemOne(uds=uds):
        await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--uds", type=Path, required=True)
    asyncio.run(_serve(parser.parse_known_args()[0].uds))


if __name__ == "__main__":
    main()
