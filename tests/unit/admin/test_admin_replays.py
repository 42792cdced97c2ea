"""The API of recorded requests, over real HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from router.admin.access import Access
from router.admin.api import Desk
from router.admin.server import AdminServer, management_app
from router.admin.status import Status
from router.config.plan import Service
from router.observe.replay import Bounds, ReplayWriter, Row
from router.observe.replay_sqlite import SqliteReplays, SqliteStore

READ, DETAIL, WRITE = "r" * 16, "d" * 16, "w" * 16


def row(number: int) -> Row:
    session = "s 1" if number > 27 else None
    keys = {"recipe": "r", "decision": "d", "model": f"m{number % 2}", "session_id": session}
    return Row(f"id{number}", float(number), keys, {"id": f"id{number}"}, {"answers": {}}, b"text")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    writer = ReplayWriter(SqliteStore(tmp_path / "r.db", Bounds(1000, 0)), row)
    for number in range(30):
        writer.put(number)
    writer.start()
    writer.stop()
    return Desk(replays=SqliteReplays(tmp_path / "r.db"))


@pytest.fixture
def root(desk: Desk) -> Iterator[str]:
    server = AdminServer([(Service("127.0.0.1", 0), management_app(Status(), desk))])
    server.start()
    yield f"http://127.0.0.1:{server.ports[0]}/api/v1/observability/replays"
    server.stop()


def ask(url: str, token: str = "", method: str = "GET") -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers, method=method)) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_a_list_in_pages(root: str) -> None:
    status, body = ask(root)
    assert (status, body["total"], body["limit"], len(body["replays"])) == (200, 30, 20, 20)
    _, body = ask(f"{root}?limit=2&offset=3&model=m1&showDetails=true")
    assert (body["total"], body["replays"]) == (15, [{"id": "id23", "answers": {}}, {"id": "id21", "answers": {}}])


@pytest.mark.parametrize(
    "query",
    [
        "limit=101",
        "limit=-1",
        "limit=x",
        "offset=1e3",
        "find=a",
        "limit=99999999999999999999",
        "limit=²",
        "showDetails=yes",
        "cache_status=hit",
    ],
)
def test_a_query_that_cannot_be_used(root: str, query: str) -> None:
    status, body = ask(f"{root}?{urllib.parse.quote(query, safe='=')}")
    assert (status, body["error"]["code"]) == (400, "invalid_request")


def test_a_search_is_by_names_and_not_by_text(root: str) -> None:
    assert [one["id"] for one in ask(f"{root}?search=ID2&limit=2")[1]["replays"]] == ["id29", "id28"]
    assert ask(f"{root}?search=S%201")[1]["total"] == 2
    assert ask(f"{root}/aggregate?search=m1")[1]["total"] == 15
    assert ask(f"{root}?search=text")[1]["total"] == 0


def test_one_and_none(root: str) -> None:
    assert ask(f"{root}/id7") == (200, {"id": "id7", "answers": {}, "request_body": "text"})
    assert ask(f"{root}/..%2F..%2Fetc%2Fpasswd")[0] == 404
    assert ask(f"{root}/id7?showDetails=true")[0] == 400


def test_counts(root: str) -> None:
    _, body = ask(f"{root}/aggregate")
    assert (body["total"], body["by_model"], body["oldest"], body["newest"]) == (30, {"m0": 15, "m1": 15}, 0.0, 29.0)


def test_a_trajectory(root: str) -> None:
    status, body = ask(f"{root}/trajectory?session_id=s%201&recipe=r")
    assert (status, [turn["id"] for turn in body["turns"]]) == (200, ["id28", "id29"])
    assert ask(f"{root}/trajectory?session_id=nobody")[1]["total"] == 0


@pytest.mark.parametrize("query", ["", "recipe=r", "session_id=", "session_id=s&model=m"])
def test_a_trajectory_is_of_a_session(root: str, query: str) -> None:
    assert ask(f"{root}/trajectory?{query}")[0] == 400


def test_roles(desk: Desk, root: str) -> None:
    desk.access = Access(
        [(READ, frozenset({"read"})), (DETAIL, frozenset({"read", "detail"})), (WRITE, frozenset({"write"}))]
    )
    assert ask(root)[0] == 401
    assert ask(root, WRITE)[0] == 403
    assert "request_body" not in ask(f"{root}/id7", READ)[1]
    assert ask(f"{root}/id7", DETAIL)[1]["request_body"] == "text"
    assert ask(root, READ, "DELETE")[0] == 403
    assert ask(f"{root}?decision=d", WRITE, "DELETE")[0] == 400, "it forgets all, whatever the filter says"
    assert ask(root, WRITE, "DELETE") == (200, {"deleted": 30})
    assert ask(root, READ)[1]["total"] == 0


def test_where_nothing_is_recorded(desk: Desk, root: str) -> None:
    desk.replays = None
    assert ask(root)[1]["error"]["code"] == "replay_disabled"


def test_a_file_that_is_gone(desk: Desk, root: str, tmp_path: Path) -> None:
    desk.replays = SqliteReplays(tmp_path / "none.db")
    assert ask(root)[0] == 503
