"""What reading a request with rules takes, by this process's own CPU clock."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from bench.rules.recipes import families, many
from bench.rules.texts import SIZES, texts, with_hits
from router.config.heuristics import HeuristicRule
from router.signals.facts import RequestFacts
from router.signals.heuristics import Heuristics
from router.wire.request import read_request
from router.wire.surface import Format

_BYTES_A_REPEAT: Final = 300_000


def growth(repeats: int) -> Iterator[Mapping[str, Any]]:
    """1,000 literals and 100 expressions over every text, without and with something to find."""
    rules = many()
    for kind, written in texts().items():
        for title, each in ((kind, written), (f"{kind}, with hits", with_hits(written))):
            yield from _sizes(title, rules, each, repeats)


def by_family(repeats: int) -> Iterator[Mapping[str, Any]]:
    """Each family by itself over every text."""
    for family, rules in families().items():
        for kind, written in texts().items():
            yield from ({"family": family, **row} for row in _sizes(kind, rules, written, repeats))


def exponent(rows: Sequence[Mapping[str, Any]]) -> float:
    """The slope of cost over bytes, both as logarithms: 1 is linear."""
    slope, _ = statistics.linear_regression(
        [math.log(row["bytes"]) for row in rows], [math.log(row["us"]) for row in rows]
    )
    return slope


def once(rules: Heuristics, data: bytes, *, times: int) -> float:
    """CPU microseconds of one reading, with facts that nobody has looked at before; parsing the body is not counted."""
    requests = [read_request(Format.CHAT, data) for _ in range(times)]
    started = time.process_time_ns()
    for request in requests:
        rules.read(RequestFacts(request))
    return (time.process_time_ns() - started) / times / 1000


def chat(text: str) -> bytes:
    """A request whose only message is this text."""
    return orjson.dumps({"model": "auto", "messages": [{"role": "user", "content": text}]})


def _sizes(
    title: str, rules: Sequence[HeuristicRule], written: Sequence[str], repeats: int
) -> Iterator[Mapping[str, Any]]:
    compiled = Heuristics(rules)
    for size, text in zip(SIZES, written, strict=True):
        data = chat(text)
        once(compiled, data, times=1)  # automata grow their states as they first meet a text
        spent = [once(compiled, data, times=max(1, _BYTES_A_REPEAT // len(data))) for _ in range(repeats)]
        yield {"text": title, "size": size, "bytes": len(text.encode()), "us": round(min(spent), 2)}
