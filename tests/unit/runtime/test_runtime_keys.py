from __future__ import annotations

from pathlib import Path

import pytest

from router.runtime.keys import KeyFault, Keys, Presented, read_keys, refuse_open

NOTHING, WRONG, RIGHT = Presented.NOTHING, Presented.WRONG, Presented.RIGHT


@pytest.mark.parametrize(
    ("headers", "presented"),
    [
        ({}, NOTHING),
        ({"authorization": ""}, NOTHING),
        ({"authorization": "Bearer two"}, RIGHT),
        ({"authorization": "bearer  two "}, RIGHT),
        ({"authorization": "Bearer tw"}, WRONG),
        ({"authorization": "Bearer"}, WRONG),
        ({"authorization": "Basic two"}, WRONG),
        ({"authorization": "Basic x", "api-key": "one"}, RIGHT),
        ({"api-key": "one"}, RIGHT),
        ({"api-key": "three"}, WRONG),
        ({"authorization": "Bearer \udcff"}, WRONG),
    ],
)
def test_a_key_is_looked_for_in_both_headers(headers: dict[str, str], presented: Presented) -> None:
    assert Keys(["one", "two"]).check(headers) is presented


def test_without_keys_everybody_is_answered() -> None:
    assert Keys().check({}) is RIGHT
    assert not Keys()


def test_keys_come_from_a_variable_and_a_file(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# rotation\none\n\n two \n")
    keys = read_keys("KEY", file, {"KEY": "three"})
    assert [keys.check({"api-key": key}) for key in ("one", "two", "three", "# rotation")] == [RIGHT] * 3 + [WRONG]
    assert not read_keys(None, None, {})


def test_a_key_that_is_named_must_be_there(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# none\n")
    with pytest.raises(KeyFault, match="--api-key-env: the environment variable KEY holds no key"):
        read_keys("KEY", None, {"KEY": " "})
    with pytest.raises(KeyFault, match=r"--api-key-file: .* holds no key"):
        read_keys(None, file, {})
    with pytest.raises(OSError, match="No such file"):
        read_keys(None, tmp_path / "absent", {})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "::1", "[::1]", "localhost"])
def test_this_machine_needs_no_key(host: str) -> None:
    refuse_open(host, Keys(), insecure=False)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.0.0.1", "runtime.internal"])  # noqa: S104
def test_elsewhere_a_key_is_needed_or_said_not_to_be(host: str) -> None:
    with pytest.raises(KeyFault, match="--api-key-env or --api-key-file, or --insecure-no-auth"):
        refuse_open(host, Keys(), insecure=False)
    refuse_open(host, Keys(["k"]), insecure=False)
    refuse_open(host, Keys(), insecure=True)
