"""Our client against jevcompat's reference server, sound and with each of its faults that answers can show.

What does not fit its question makes that question unknown and no other; nothing is ever guessed, and nothing crashes.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from router.asking.asker import Asker
from router.asking.client import SystemOneClient
from router.asking.line import Line
from router.config.deployments import Dialect
from router.questions import QuestionType, Unknown, UnknownReason
from tests.unit.asking.asking_builders import (
    capabilities,
    choice,
    deployment,
    label_set,
    noul,
    rule,
    score,
    stage,
    texts,
)

BASE = capabilities({QuestionType.NOUL, QuestionType.CHOICE, QuestionType.SCORE})
REMOTE = deployment(served_name="jev-latest", dialect=Dialect.SYSTEMONE, capabilities=BASE)
QUESTIONS = {
    "noul": noul("Is it about code?"),
    "choice": choice("Code", "Math"),
    "score": score("low", "mid", "high"),
    "set": label_set("a", "b"),  # put together from nouls
}
PLAN = stage(*(rule(name, question, timeout_ms=10_000) for name, question in QUESTIONS.items()), on=[REMOTE])
ALL = frozenset(QUESTIONS)

UNKNOWN_UNDER: dict[str | None, frozenset[str]] = {
    None: frozenset(),
    "plain-content-type": frozenset(),
    "strict-ids": frozenset(),
    "extra-answer": frozenset(),
    "float-usage": frozenset(),
    "wrong-route": ALL,
    "xssi-200": ALL,
    "nan": ALL,
    "first-question-only": ALL - {"noul"},
    "boolean-type": frozenset({"noul", "set"}),
    "noul-range": frozenset({"noul", "set"}),
    "choice-no-confidence": frozenset({"choice"}),
    "choice-key-case": frozenset({"choice"}),
    "choice-sum": frozenset({"choice"}),
    "choice-second": frozenset({"choice"}),
    "score-keys-1-based": frozenset({"score"}),
    "score-sum": frozenset({"score"}),
    "score-argmax": frozenset({"score"}),
    "confidence-over": frozenset({"choice", "score"}),
}


@contextmanager
def server(fault: str | None) -> Iterator[int]:
    """The reference server on a free port."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [str(Path(sys.executable).with_name("jevcompat")), "mock", "--port", str(port)]
    if fault is not None:
        command += ["--fault", fault]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield port
    finally:
        process.terminate()
        process.wait()


async def listening(port: int) -> None:
    """Return once somebody takes connections there."""
    async with asyncio.timeout(20):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return


@pytest.mark.parametrize("fault", UNKNOWN_UNDER, ids=str)
async def test_only_what_is_wrong_is_unknown(fault: str | None) -> None:
    with server(fault) as port:
        await listening(port)
        client = SystemOneClient(f"http://127.0.0.1:{port}/v1/systemone", key="unused")
        try:
            deadline = asyncio.get_running_loop().time() + 20
            found = await Asker({"m": Line(client)}).ask(PLAN, texts(PLAN), stage_deadline=deadline)
        finally:
            await client.aclose()
    unknown = {name for name, answer in found.answers.items() if isinstance(answer, Unknown)}
    assert unknown == UNKNOWN_UNDER[fault]
    assert {found.answers[name] for name in unknown} <= {Unknown(UnknownReason.INVALID_ANSWER)}
    assert found.sent == 1
