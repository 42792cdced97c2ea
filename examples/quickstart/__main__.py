"""`make run` and `make smoke`: the whole product on this machine, with two sample backends.

Starts the backends, then `pointsman serve --envoy` on pointsman.yaml beside this file, sends a handful of requests
through Envoy, shows where each went and why, and serves until Ctrl-C (with --once it stops and reports instead).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from rich import box
from rich.console import Console
from rich.table import Table

from examples.quickstart.processes import LOGS, PortTaken, Processes, require_free
from examples.quickstart.samples import SAMPLES, Sample

CONFIG = Path(__file__).with_name("pointsman.yaml")
LISTENER = "http://127.0.0.1:8801"
READY = "http://127.0.0.1:8080/readyz"
PORTS = {
    8801: "Envoy",
    8080: "management",
    9190: "metrics",
    50051: "ext_proc",
    9101: "sample backend",
    9102: "sample backend",
}
START_WITHIN_S = 120.0

console = Console(width=None if sys.stdout.isatty() else 120)


class StartFailure(Exception):
    """The product did not come up."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a client saw of one sample."""

    sample: Sample
    status: int
    model: str
    decision: str
    why: str

    @property
    def right(self) -> bool:
        """Whether that is what the sample must come to."""
        return self.status == self.sample.status and self.decision == (self.sample.decision or "")


async def wait_until_ready(session: aiohttp.ClientSession, processes: Processes) -> None:
    """Return once the router is ready and Envoy takes requests; raise StartFailure when it does not come to that."""
    deadline = asyncio.get_running_loop().time() + START_WITHIN_S
    while asyncio.get_running_loop().time() < deadline:
        if name := processes.ended():
            raise StartFailure(f"{name} ended. The last it said, in {LOGS}/{name}.log:\n{processes.tail(name)}")
        try:
            async with session.get(READY) as ready, session.get(f"{LISTENER}/v1/models") as listed:
                if ready.status == listed.status == 200:
                    return
        except aiohttp.ClientError:
            pass
        await asyncio.sleep(0.1)
    raise StartFailure(f"not ready within {START_WITHIN_S:.0f} s; see {LOGS}")


async def send(session: aiohttp.ClientSession, sample: Sample) -> Seen:
    """Send one sample through Envoy and read the whole answer."""
    async with session.post(LISTENER + sample.path, json=sample.body(), headers=sample.headers) as answer:
        body = await answer.read()
        headers = answer.headers
    if answer.status == 200:
        matched = headers.get("x-vsr-matched-decision-model")
        sure = float(headers.get("x-vsr-selected-confidence", 0))
        why = f"{matched.replace(',', ' and ')} matched, {sure:.2f}" if matched and sure else "no rule was sure"
    else:
        error = json.loads(body)["error"]
        why = str(error.get("code") or error["type"])  # Anthropic's errors have no code
    return Seen(
        sample,
        answer.status,
        headers.get("x-vsr-selected-model", ""),
        headers.get("x-vsr-selected-decision", ""),
        why,
    )


def show(results: list[Seen]) -> None:
    """A table of where each request went and why."""
    table = Table(title="Where each request went, and why", box=box.SIMPLE_HEAD, pad_edge=False)
    # Where room is short, texts break over lines, and rich drops what is last: the verdict comes first.
    table.add_column("", min_width=8)
    table.add_column("client", no_wrap=True)
    table.add_column("prompt", min_width=14)
    for column in ("decision", "backend"):
        table.add_column(column, no_wrap=True)
    table.add_column("why", min_width=9)
    for seen in results:
        sample = seen.sample
        table.add_row(
            "[green]ok[/]" if seen.right else f"[red]expected {sample.decision or sample.status}[/]",
            sample.client + (" stream" if sample.stream else ""),
            sample.prompt,
            seen.decision or f"{seen.status}",
            seen.model,
            seen.why,
        )
    console.print(table)


CURL = f"""Try it:

  curl -si {LISTENER}/v1/chat/completions -H 'content-type: application/json' \\
    -d '{{"model": "pointsman/auto", "messages": [{{"role": "user", "content": "Explain a Python decorator"}}]}}'

Metrics: http://127.0.0.1:9190/metrics   readiness: {READY}   logs: {LOGS}/
"""


async def serve_until(stopped: asyncio.Event, processes: Processes) -> None:
    """Return on Ctrl-C; raise StartFailure when a child ends by itself."""
    while not stopped.is_set():
        if name := processes.ended():
            raise StartFailure(f"{name} ended by itself:\n{processes.tail(name)}")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), 0.5)


async def run(once: bool) -> int:
    """Start everything, send the samples, serve; 1 when something is not as it must be."""
    for port, what in PORTS.items():
        require_free("127.0.0.1", port, what)
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    processes = Processes()
    try:
        processes.start("backend-openai", "-m", "examples.backends", "--port", "9101", "--format", "openai")
        processes.start("backend-anthropic", "-m", "examples.backends", "--port", "9102", "--format", "anthropic")
        processes.start("pointsman", "-m", "router.cli", "serve", "--config", str(CONFIG), "--envoy")
        async with aiohttp.ClientSession() as session:
            with console.status("Starting Envoy, the router, the decision model and two sample backends ..."):
                await wait_until_ready(session, processes)
            results = [await send(session, sample) for sample in SAMPLES]
        show(results)
        wrong = sum(not seen.right for seen in results)
        if not once:
            console.print(CURL, highlight=False, markup=False)
            console.print("Serving until Ctrl-C.")
            await serve_until(stopped, processes)
        elif wrong:
            console.print(f"[red]{wrong} of {len(results)} samples went wrong[/]")
        return 1 if once and wrong else 0
    finally:
        processes.stop()


def main() -> int:
    """Entry point of `python -m examples.quickstart`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--once", action="store_true", help="send the samples, stop, and report by the exit status")
    try:
        return asyncio.run(run(parser.parse_args().once))
    except (StartFailure, PortTaken) as failure:
        console.print(str(failure), style="red", markup=False, highlight=False)
        return 1


if __name__ == "__main__":
    sys.exit(main())
