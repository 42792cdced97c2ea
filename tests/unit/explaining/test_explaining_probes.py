"""Probe files: what a line may say, how a probe is judged, and how files are counted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from router.explaining.probes import BadProbe, Came, Judged, Verdict, read_probes, tally

ASKED = {"model": "auto", "text": "a secret"}


def line(**more: Any) -> str:
    return json.dumps({"request": ASKED, "expect": {"decision": "code"}, **more})


def judged(came: Came, **more: Any) -> Judged:
    (probe,) = read_probes(line(**more), "p")
    return Judged(probe, came)


CODE = Came(200, "code", "coder")
CHAT = Came(200, "chat", "small")


@pytest.mark.parametrize(
    ("expect", "came", "right"),
    [
        ({"decision": "code"}, CODE, True),
        ({"decision": "code", "model": "coder", "status": 200}, CODE, True),
        ({"decision": "code", "model": "small"}, CODE, False),
        ({"status": 503}, CODE, False),
        ({"decision": None}, Came(200, None, "small"), True),
        ({"decision": None}, CODE, False),
        ({"decision": "refuse", "model": None}, Came(200, "refuse", None), True),
        ({"status": 503, "decision": None}, Came(503, None, None), True),
    ],
)
def test_all_that_is_expected_must_come(expect: dict[str, Any], came: Came, right: bool) -> None:
    assert judged(came, expect=expect).right is right


@pytest.mark.parametrize(
    ("came", "known_miss", "verdict"),
    [
        (CODE, False, Verdict.RIGHT),
        (CHAT, False, Verdict.WRONG),
        (CHAT, True, Verdict.KNOWN_MISS),
        (CODE, True, Verdict.FIXED),
    ],
)
def test_verdicts(came: Came, known_miss: bool, verdict: Verdict) -> None:
    assert judged(came, known_miss=known_miss).verdict is verdict


def test_a_known_miss_counts_as_a_miss_until_it_is_fixed() -> None:
    found = tally([judged(CODE), judged(CHAT, known_miss=True), judged(CODE, known_miss=True), judged(CHAT)])
    assert (found.total, found.right, found.share) == (4, 2, 0.5)
    assert found.groups == {"code": (4, 2)}
    assert [found.verdicts[verdict] for verdict in Verdict] == [1, 1, 1, 1]


def test_probes_are_grouped_by_what_is_written_first_of_decision_status_model() -> None:
    expects = [{"decision": None}, {"status": 503}, {"model": "m"}, {"model": "m", "decision": "d"}]
    lines = "\n".join(line(expect=expect) for expect in expects)
    assert [probe.group for probe in read_probes(lines, "p")] == ["no decision", "503", "m", "d"]


def test_every_format_and_headers() -> None:
    lines = [
        line(request={"model": "auto", "input": "hi"}, headers={"X-Session-Id": "s"}),
        "",
        line(request={"model": "auto", "messages": [{"role": "user", "content": "hi"}]}, format="messages"),
        line(why="people may say why"),
    ]
    probes = read_probes("\n".join(lines), "p")
    assert [probe.line for probe in probes] == [1, 3, 4]
    paths = [probe.posed.head.path for probe in probes]
    assert paths == ["/v1/responses", "/v1/messages", "/v1/chat/completions"]
    assert probes[0].posed.head.headers == {"x-session-id": "s"}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("", "p: holds no probes"),
        ("\n{", "p:2: is no JSON"),
        ("[]", "p:1: a probe is an object with request and expect"),
        ('{"expect": {"decision": "code"}}', "p:1: a probe is an object with request and expect"),
        (line(expected=1), "p:1: unknown key expected; known are"),
        (line(known_miss="yes"), "p:1: known_miss is true or false"),
        (line(expect={}), "p:1: expect is an object"),
        (line(expect={"decison": "code"}), "p:1: expect is an object"),
        (line(expect={"status": True}), "p:1: expect.status is a number"),
        (line(expect={"status": None}), "p:1: expect.status is a number"),
        (line(expect={"model": 3}), "p:1: expect.model is a name"),
        (line(expect={"decision": "cod"}), "p:1: there is no decision 'cod'; there are: chat, code"),
        (line(request=3), "p:1: "),
        (line(format="soap"), "p:1: "),
    ],
)
def test_a_line_that_is_no_probe(written: str, message: str) -> None:
    with pytest.raises(BadProbe) as caught:
        read_probes(written, "p", ["code", "chat"])
    assert str(caught.value).startswith(message)
    assert "secret" not in str(caught.value)
