"""`python -m examples.backends --port 9101 --format openai --model qwen3-8b`: serve until SIGINT or SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
import signal

import uvloop

from examples.backends.formats import FORMATS
from examples.backends.server import Settings, start


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m examples.backends", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9101, help="0 lets the system choose")
    parser.add_argument("--format", action="append", choices=list(FORMATS), help="repeatable; all by default")
    parser.add_argument("--model", action="append", default=[], help="repeatable; any model is served by default")
    parser.add_argument("--base-path", default="/v1", help="what stands before /chat/completions")
    parser.add_argument("--delay-ms", type=float, default=0, help="before the first byte")
    parser.add_argument("--chunk-delay-ms", type=float, default=0, help="between the events of a stream")
    parser.add_argument("--status", type=int, default=200, help="fail every request with this status")
    parser.add_argument("--echo", action="store_true", help="repeat the user's last text in the answer")
    return parser.parse_args(arguments)


async def serve(options: argparse.Namespace) -> None:
    """Serve until told to stop."""
    settings = Settings(
        formats=options.format or tuple(FORMATS),
        models=options.model,
        base_path=options.base_path,
        delay_ms=options.delay_ms,
        chunk_delay_ms=options.chunk_delay_ms,
        status=options.status,
        echo=options.echo,
    )
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    runner, port = await start(settings, options.host, options.port)
    print(f"sample backend on http://{options.host}:{port}{settings.base_path}", flush=True)
    await stop.wait()
    await runner.cleanup()


if __name__ == "__main__":
    uvloop.run(serve(parse()))
