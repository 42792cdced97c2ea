"""Stands before the decision model and behind the router, and writes down what was really read and really forwarded.

    router ──▶ front ──▶ runtime          a text is read once the runtime has answered a call about it with 200
    Envoy  ──▶ backend                    a text is forwarded once a request with it has come

`GET /_seen` of the backend's port tells, by digests of texts; `GET /_forget` begins anew. It is a process of its own
and knows nothing of the router: what it saw is held against what the router said.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import re
import time
from collections import Counter
from typing import Any

import orjson
import uvloop

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


def digest(text: str) -> str:
    """What stands for a text."""
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


class Seen:
    """What was seen since the start. `calls` counts those to the model by text; `refused` are when first calls and
    later ones were refused for want of room, and `answered` when calls were answered."""

    def __init__(self) -> None:
        self.read: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self.forwarded: list[tuple[str, str]] = []
        self.answered: list[float] = []
        self.refused: dict[str, list[float]] = {"first": [], "again": []}

    def called(self, text: str, status: int) -> None:
        key = digest(text)
        again = self.calls[key] > 0
        self.calls[key] += 1
        self.statuses[str(status)] += 1
        now = round(time.monotonic(), 4)
        if status == 200:
            self.read[key] += 1
            self.answered.append(now)
        elif status == 429:
            self.refused["again" if again else "first"].append(now)

    def told(self) -> bytes:
        return orjson.dumps(vars(self))


class Witness:
    def __init__(self, runtime: int) -> None:
        self.seen = Seen()
        self._runtime = runtime

    async def front(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hand a connection's calls on to the runtime."""
        there, to_there = await asyncio.open_connection("127.0.0.1", self._runtime, limit=1 << 20)
        try:
            while True:
                head, body = await _message(reader)
                to_there.write(head + body)
                answer_head, answer = await _message(there)
                if head.startswith(b"POST"):
                    self.seen.called(orjson.loads(body)["state"], int(answer_head[9:12]))
                writer.write(answer_head + answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            to_there.close()
            writer.close()

    async def backend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer a connection's requests as the APIs would."""
        try:
            while True:
                head, body = await _message(reader)
                writer.write(self._answer(head.split(b" ", 2)[1].decode(), body))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _answer(self, path: str, body: bytes) -> bytes:
        if path == "/_seen":
            return _http(self.seen.told())
        if path == "/_forget":
            self.seen = Seen()
        if not body:
            return _http(b"{}")
        request = orjson.loads(body)
        text = request["input"] if "input" in request else request["messages"][-1]["content"]
        self.seen.forwarded.append((digest(text), request["model"]))
        return _http(orjson.dumps(_answer_of(path, request["model"])))


def _answer_of(path: str, model: str) -> dict[str, Any]:
    if path.endswith("/messages"):
        content = [{"type": "text", "text": "Fine."}]
        usage = {"input_tokens": 1, "output_tokens": 1}
        turn = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "stop_sequence": None}
        return {**turn, "content": content, "stop_reason": "end_turn", "usage": usage}
    if path.endswith("/responses"):
        said = [{"type": "output_text", "text": "Fine.", "annotations": list[str]()}]
        message = {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": said}
        common = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": model}
        return {**common, "output": [message], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    choice = {"index": 0, "message": {"role": "assistant", "content": "Fine."}, "finish_reason": "stop"}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": model, "choices": [choice]}


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(head)
    return head, await reader.readexactly(int(length[1])) if length else b""


def _http(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body


async def _serve(front: int, backend: int, runtime: int) -> None:
    witness = Witness(runtime)
    await asyncio.start_server(witness.front, "127.0.0.1", front, limit=1 << 20)
    server = await asyncio.start_server(witness.backend, "127.0.0.1", backend, limit=1 << 20)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name in ("--front", "--backend", "--runtime"):
        parser.add_argument(name, type=int, required=True)
    options = parser.parse_args()
    uvloop.run(_serve(options.front, options.backend, options.runtime))
