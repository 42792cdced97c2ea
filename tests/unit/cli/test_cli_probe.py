"""`pointsman probe`: files of probes decided here, or sent to a listener."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from router.cli import main
from router.explaining.probes import Came, read_probes
from router.serving.probing import Unreachable, send

CONFIG = """\
version: v0.5
listeners: [{name: public, address: 127.0.0.1, port: 8801}]
providers:
  models:
    - {name: coder, backend_refs: [{endpoint: "http://127.0.0.1:9101/v1"}]}
    - {name: claude, api_format: anthropic, backend_refs: [{endpoint: "http://127.0.0.1:9102/v1"}]}
recipes:
  - name: ask
    signals:
      keywords: [{name: bad, keywords: [forbidden]}, {name: program, keywords: [python]}]
      systemone: [{name: slow, deployment: far, question: {type: noul, instructions: Is it slow?}}]
    decisions:
      - name: refuse
        priority: 9
        rules: {type: keyword, name: bad}
        plugins: [{type: fast_response, configuration: {message: "No."}}]
      - {name: code, priority: 5, rules: {type: keyword, name: program}, modelRefs: [{model: coder}, {model: claude}]}
      - name: strict
        priority: 3
        rules: {type: systemone, name: slow, on_unknown: fail_request}
        modelRefs: [{model: coder}]
entrypoints: [{model_names: [auto], recipe: ask}]
global:
  model_catalog:
    deployments:
      far: {provider: systemone, endpoint: "http://127.0.0.1:9/v1/systemone", model: m}
"""


def probe(text: str, expect: Mapping[str, Any], **more: Any) -> str:
    return json.dumps({"request": {"model": "auto", "text": text}, "expect": expect, **more})


GOOD = [
    probe("python please", {"decision": "code", "model": "coder"}),
    probe("python please", {"decision": "code", "model": "claude"}, format="messages"),
    probe("forbidden python", {"decision": "refuse", "model": None, "status": 200}),
    probe("unknown to all", {"decision": None, "status": 503}),
]
MISS = probe("a snake", {"decision": "code"}, known_miss=True)
WRONG = probe("a worm", {"decision": "code"})


def run(folder: Path, lines: list[str], *arguments: str) -> int:
    config, probes = folder / "c.yaml", folder / "p.jsonl"
    config.write_text(CONFIG)
    probes.write_text("\n".join(lines))
    return main(["probe", str(config), str(probes), *arguments])


def test_all_as_expected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, [*GOOD, MISS]) == 0
    out = capsys.readouterr().out
    assert "p.jsonl: 4 of 5 as expected (80%), 1 known to miss" in out
    assert "p.jsonl:5  known miss  decision=code  decision=none model=none status=503" in out
    assert "snake" not in out


def test_one_that_is_wrong_fails_unless_a_share_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, [*GOOD, WRONG]) == 1
    assert "p.jsonl:5  wrong" in capsys.readouterr().out
    assert run(tmp_path, [*GOOD, WRONG], "--at-least", "0.8") == 0
    assert run(tmp_path, [*GOOD, WRONG], "--at-least", "0.81") == 1


def test_a_miss_that_came_right_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, [probe("python", {"decision": "code"}, known_miss=True)]) == 0
    assert "1 marked known_miss came out right: remove the mark" in capsys.readouterr().out


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, [GOOD[0], MISS], "--json") == 0
    (told,) = json.loads(capsys.readouterr().out)["files"]
    assert (told["probes"], told["as_expected"]) == (2, 1)
    assert told["expected"] == {"code": {"probes": 2, "right": 1}}
    assert told["lines"][1] == {
        "line": 2,
        "verdict": "known_miss",
        "expected": {"decision": "code"},
        "came": {"decision": None, "model": None, "status": 503},
    }


@pytest.mark.parametrize(
    ("lines", "message"), [(["{"], "p.jsonl:1: is no JSON"), ([probe("a", {"decision": "cod"})], "no decision 'cod'")]
)
def test_a_file_that_is_no_probes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: list[str], message: str
) -> None:
    assert run(tmp_path, lines) == 1
    assert message in capsys.readouterr().err


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, GOOD, str(tmp_path / "q.jsonl")) == 1
    assert "q.jsonl: cannot be read" in capsys.readouterr().err


def test_a_share_is_a_share() -> None:
    with pytest.raises(SystemExit):
        main(["probe", "c", "p", "--at-least", "80"])


class Listener(http.server.BaseHTTPRequestHandler):
    """Decides everything alike."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("x-vsr-selected-decision", "code")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Nothing."""


def test_the_verb_asks_a_listener(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listener) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        assert run(tmp_path, [probe("a worm", {"decision": "code"})], "--via", url) == 0
        assert run(tmp_path, [probe("a worm", {"decision": "refuse"})], "--via", url) == 1
        server.shutdown()
    assert "decision=refuse  decision=code model=none status=200" in capsys.readouterr().out


async def test_probes_sent_to_a_listener() -> None:
    seen: list[tuple[str, str | None, Any]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.path, request.headers.get("x-team"), await request.json()))
        return web.json_response(
            {}, status=200, headers={"x-vsr-selected-decision": "code", "x-vsr-selected-model": "coder"}
        )

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", answer)
    probes = read_probes(probe("python", {"decision": "code"}, headers={"X-Team": "blue"}), "p")
    async with TestServer(app) as server:
        (one,) = await send(str(server.make_url("/")), probes)
    assert one.came == Came(200, "code", "coder")
    sent = {"model": "auto", "messages": [{"role": "user", "content": "python"}]}
    assert seen == [("/v1/chat/completions", "blue", sent)]


async def test_nobody_listens() -> None:
    with pytest.raises(Unreachable, match=r"http://127\.0\.0\.1:9: cannot be asked: ClientConnectorError"):
        await send("http://127.0.0.1:9", read_probes(GOOD[0], "p"))
