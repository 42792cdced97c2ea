"""Reading YAML strictly, with a place for everything."""

from __future__ import annotations

import math

import pytest

from router.config.document import Document, Unreadable, parse
from router.config.load import load
from router.config.problems import ConfigError, Place, dotted, nearest
from router.config.scalars import NULL, BadReference, Null, resolve, substitute


def read(text: str, **environ: str) -> Document:
    return parse(text, file="c.yaml", environ=environ)


def problems(text: str) -> list[str]:
    return [problem.render() for problem in read(text).problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("FALSE", False),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("12", 12),
        ("+12", 12),
        ("-0", 0),
        ("010", 10),
        ("0o10", 8),
        ("0x1F", 31),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-.inf", -math.inf),
        ("2024-01-01", "2024-01-01"),
        ("v0.5", "v0.5"),
    ],
)
def test_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    found = resolve(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", ["", "~", "null", "Null"])
def test_null_is_a_value_of_its_own(text: str) -> None:
    assert resolve(text) is NULL
    assert isinstance(read(f"a: {text}").value["a"], Null)


def test_not_a_number() -> None:
    found = resolve(".nan")
    assert isinstance(found, float)
    assert math.isnan(found)


def test_places() -> None:
    document = read("a:\n  - b: 1\n    'c': [2, x]\n")
    assert document.value == {"a": [{"b": 1, "c": [2, "x"]}]}
    assert document.place(("a",), key=True) == Place(1, 1)
    assert document.place(("a", 0, "b"), key=True) == Place(2, 5)
    assert document.place(("a", 0, "b")) == Place(2, 8)
    assert document.place(("a", 0, "c", 1)) == Place(3, 14)
    assert document.place(("a", 0, "absent")) == Place(2, 5)


def test_quoted_scalars_stay_text() -> None:
    assert read("a: '1'\nb: \"true\"\nc: |\n  3\n").value == {"a": "1", "b": "true", "c": "3\n"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: 2\na: 3\n", 'c.yaml:3:1: duplicate key "a"; the first is in line 1'),
        ("a: {b: 1, b: 2}\n", 'c.yaml:1:11: a: duplicate key "b"; the first is in line 1'),
        ("1: x\n", 'c.yaml:1:1: a key must be text, not 1; quote it: "1"'),
        ("~: x\n", 'c.yaml:1:1: a key must be text, not null; quote it: "~"'),
        ("? [a]\n: x\n", "c.yaml:1:3: a key must be text, not a list or a mapping"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", "c.yaml:3:3: c: merge keys (<<) are not allowed; write the keys out"),
    ],
)
def test_keys(text: str, expected: str) -> None:
    assert problems(text) == [expected]


def test_true_and_false_are_keys() -> None:
    assert read("true: a\nfalse: b\n'no': c\n").value == {"true": "a", "false": "b", "no": "c"}


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "empty"),
        ("# only a comment\n", 1, 1, "empty"),
        ("- a\n", 1, 1, "must be a mapping"),
        ("a: 1\n---\nb: 2\n", 2, 1, "more than one YAML document"),
        ("a:\n\tb: 1\n", 2, 1, "not readable as YAML"),
        ("a: [1\n", 2, 1, "not readable as YAML"),
        ("a: !!str 1\n", 1, 4, "tags are not allowed"),
        ("a: !x {}\n", 1, 4, "tags are not allowed"),
        ("a: *nobody\n", 1, 4, "refers to nothing"),
        ("a: &x [*x]\n", 1, 8, "refers to nothing"),
        ("a: \x07\n", 1, 4, "does not allow"),
        ("a: " + "[" * 100, 1, 67, "nested deeper"),
    ],
)
def test_what_is_no_document(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read(text)
    assert message in caught.value.message
    assert caught.value.place == Place(line, column)


def test_absurd_nesting_does_not_exhaust_the_stack() -> None:
    for opening in ("[", "{a: ", "- "):
        with pytest.raises(Unreadable):
            read("a: " + opening * 100_000)


def test_aliases_expand_with_their_own_paths() -> None:
    document = read("a: &x {b: [1]}\nc: *x\n")
    assert document.value["c"] == {"b": [1]}
    assert document.value["c"].path == ("c",)
    assert document.place(("c", "b", 0)) == Place(1, 12)


def test_an_alias_bomb_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(Unreadable, match="expand to too much"):
        read("\n".join(lines))


def test_a_file_that_is_not_utf_8(tmp_path: object) -> None:
    from pathlib import Path

    path = Path(str(tmp_path)) / "x.yaml"
    path.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(ConfigError) as caught:
        load(path, environ={}, describe=lambda _: None, serving=False)
    assert caught.value.problems[0].render() == f"{path}:2:4: the file is not UTF-8 text; save it as UTF-8"


def test_a_byte_order_mark_is_nothing(tmp_path: object) -> None:
    from pathlib import Path

    from tests.support.config_samples import GOOD, describe

    path = Path(str(tmp_path)) / "x.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert load(path, environ={}, describe=describe, serving=True).plan.recipes


@pytest.mark.parametrize(
    ("text", "plain", "value"),
    [
        ("${A}", True, 5),
        ("${A}", False, "5"),
        ("x-${A}", True, "x-5"),
        ("${A}${A}", True, "55"),
        ("$${A}", True, "${A}"),
        ("$A", True, "$A"),
        ("${B}", True, "b ${A}"),
    ],
)
def test_references(text: str, plain: bool, value: object) -> None:
    assert substitute(text, plain=plain, environ={"A": "5", "B": "b ${A}"}).value == value


@pytest.mark.parametrize("text", ["${}", "${A:-b}", "${1}", "${A", "a ${ b"])
def test_other_braces_are_refused(text: str) -> None:
    with pytest.raises(BadReference):
        substitute(text, plain=True, environ={"A": "5"})
    assert "only ${NAME} can be written here" in problems(f"a: '{text}'\n")[0]


def test_paths_and_near_names() -> None:
    assert dotted(("a", 0, "b-c", "d.e", 1)) == 'a[0].b-c["d.e"][1]'
    assert nearest("Thresold", ["threshold", "head"]) == "threshold"
    assert nearest("zzz", ["threshold"]) is None
