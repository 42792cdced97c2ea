"""The backend behind every rung: one constant chat completion, as cheaply as Python can send it.

`GET /_last` shows the head and the size of the last POST and the model it named, so that the benchmark can prove that a
rung does what its name says.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from typing import cast

import uvloop

ANSWER = {
    "id": "chatcmpl-bench",
    "object": "chat.completion",
    "created": 1700000000,
    "model": "bench-model",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "An answer of a few words."}, "finish_reason": "stop"}
    ],
    "usage": {"prompt_tokens": 256, "completion_tokens": 6, "total_tokens": 262},
}
_MODEL = re.compile(rb'"model"\s*:\s*"([^"]*)"')


def _http(payload: object) -> bytes:
    body = json.dumps(payload).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body


class Backend(asyncio.Protocol):
    """One connection, one request at a time."""

    answer = _http(ANSWER)
    last: tuple[bytes, bytes] = (b"", b"")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.buffer = bytearray()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head_end = self.buffer.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = bytes(self.buffer[:head_end]).lower()
        if not self._complete(head, head_end + 4):
            return
        if head.startswith(b"get "):
            self.transport.write(self._show(head))
        else:
            Backend.last = (bytes(self.buffer[:head_end]), bytes(self.buffer[head_end + 4 :]))
            self.transport.write(self.answer)
        self.buffer.clear()

    def _complete(self, head: bytes, start: int) -> bool:
        if b"transfer-encoding: chunked" in head:
            return self.buffer.endswith(b"0\r\n\r\n")
        length = re.search(rb"\r\ncontent-length: *(\d+)", head)
        return len(self.buffer) - start >= (int(length[1]) if length else 0)

    def _show(self, head: bytes) -> bytes:
        if not head.startswith(b"get /_last "):
            return _http({"status": "ok"})
        request, body = Backend.last
        model = _MODEL.search(body)
        shown = {"head": request.decode("latin-1"), "bytes": len(body), "model": model[1].decode() if model else None}
        return _http(shown)


async def serve(port: int) -> None:
    """Serve until killed."""
    server = await asyncio.get_running_loop().create_server(Backend, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    uvloop.run(serve(parser.parse_args().port))
