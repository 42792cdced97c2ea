"""Who may use the management API."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.admin.access import Access, Admission, read_access
from router.config.credentials import KeyUnavailable
from router.config.services import AccessToken

READ, WRITE = "r" * 16, "w" * 16
BOTH = Access([(READ, frozenset({"read"})), (WRITE, frozenset({"read", "write"}))])
GRANTED, NO_TOKEN, NOT_ALLOWED = Admission.GRANTED, Admission.NO_TOKEN, Admission.NOT_ALLOWED


@pytest.mark.parametrize(
    ("sent", "read", "write"),
    [
        (f"Bearer {READ}", GRANTED, NOT_ALLOWED),
        (f"bearer  {WRITE} ", GRANTED, GRANTED),
        (f"Bearer {READ}x", NO_TOKEN, NO_TOKEN),
        (f"Basic {READ}", NO_TOKEN, NO_TOKEN),
        (READ, NO_TOKEN, NO_TOKEN),
        ("Bearer ", NO_TOKEN, NO_TOKEN),
        ("Bearer \udce9", NO_TOKEN, NO_TOKEN),
        ("", NO_TOKEN, NO_TOKEN),
    ],
)
def test_a_token_allows_what_its_roles_say(sent: str, read: Admission, write: Admission) -> None:
    headers = {"Authorization": sent, "Host": "127.0.0.1:8080"}
    assert (BOTH.admit(headers, "read"), BOTH.admit(headers, "write")) == (read, write)


@pytest.mark.parametrize(
    ("host", "answer"),
    [
        ("127.0.0.1:8080", GRANTED),
        ("localhost", GRANTED),
        ("[::1]:8080", GRANTED),
        ("evil.example:8080", NOT_ALLOWED),
        ("10.0.0.1", NOT_ALLOWED),
        ("", NOT_ALLOWED),
    ],
)
def test_without_tokens_a_request_must_name_this_machine(host: str, answer: Admission) -> None:
    assert Access().admit({"Host": host}, "write") is answer


def test_tokens_are_read_from_the_environment_and_from_files(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(WRITE + "\n")
    tokens = [
        AccessToken("TOKEN", None, frozenset({"read"})),
        AccessToken(None, str(tmp_path / "token"), frozenset({"write"})),
    ]
    access = read_access(tokens, {"TOKEN": READ})
    assert access.admit({"Authorization": f"Bearer {READ}"}, "read") is GRANTED
    assert access.admit({"Authorization": f"Bearer {WRITE}"}, "write") is GRANTED


@pytest.mark.parametrize(("value", "message"), [(None, "unset or empty"), ("tooshortkey", "shorter than 16")])
def test_a_token_that_is_none(value: str | None, message: str) -> None:
    environ = {} if value is None else {"TOKEN": value}
    with pytest.raises(KeyUnavailable, match=message) as caught:
        read_access([AccessToken("TOKEN", None, frozenset({"read"}))], environ)
    assert value is None or value not in str(caught.value)
