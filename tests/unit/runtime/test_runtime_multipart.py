from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.runtime.assets import UnreferencedAsset, check_assets
from router.runtime.body import BadBody
from router.runtime.multipart import boundary_of, read_form


def form(*parts: tuple[str, bytes], boundary: str = "b", end: bytes = b"--\r\n") -> bytes:
    pieces = [
        b'--%b\r\nContent-Disposition: form-data; name="%b"; filename="f"\r\nContent-Type: x/y\r\n\r\n%b\r\n'
        % (boundary.encode(), name.encode(), content)
        for name, content in parts
    ]
    return b"".join(pieces) + b"--" + boundary.encode() + end


@pytest.mark.parametrize(
    ("content_type", "boundary"),
    [
        ('multipart/form-data; boundary="a b"', "a b"),
        ("Multipart/Form-Data; boundary=ab", "ab"),
        ("multipart/form-data", ""),
        ("application/json", None),
        ("", None),
        ("\x00;;;", None),
    ],
)
def test_the_boundary(content_type: str, boundary: str | None) -> None:
    assert boundary_of(content_type) == boundary


@given(content=st.binary(max_size=40), json=st.binary(max_size=40))
@settings(max_examples=50, deadline=None)
def test_parts_come_back_byte_for_byte(content: bytes, json: bytes) -> None:
    got = read_form(form(("request", json), ("asset-0", content), boundary="-=xYz42"), "-=xYz42")
    assert (got.request, got.parts) == (json, {"asset-0": content})


@pytest.mark.parametrize(
    ("data", "boundary"),
    [
        (b"", "b"),
        (form(("request", b"{}")), ""),
        (form(("request", b"{}")), "b" * 71),
        (form(("request", b"{}")), "é"),
        (form(("request", b"{}"), end=b""), "b"),
        (form(("request", b"{}"))[:-8], "b"),
        (form(("asset-0", b"x")), "b"),
        (form(("request", b"{}"), ("request", b"{}")), "b"),
        (form(*[(f"p{index}", b"") for index in range(70)]), "b"),
        (b"--b\r\nno head--b--\r\n", "b"),
        (b"--b\r\nX: y\r\n\r\nz\r\n--b--\r\n", "b"),
        (b"--b\r\nContent-Disposition: form-data\r\n\r\nz\r\n--b--\r\n", "b"),
        (b"--b\r\nX: " + b"y" * 5000 + b"\r\n\r\nz\r\n--b--\r\n", "b"),
    ],
)
def test_what_is_no_form_is_refused(data: bytes, boundary: str) -> None:
    with pytest.raises(BadBody) as caught:
        read_form(data, boundary)
    assert caught.value.malformed


@given(data=st.binary(max_size=80))
@settings(max_examples=100, deadline=None)
def test_any_bytes_are_a_form_or_refused(data: bytes) -> None:
    try:
        read_form(b"--b\r\n" + data, "b")
    except BadBody as error:
        assert error.malformed  # noqa: PT017


IMAGE = {"type": "image", "format": "png", "data_base64": "eA=="}


def body(assets: Any, **more: Any) -> dict[str, Any]:
    return {"state": {"see": ["<image:1>"]}, "questions": {}, "assets": assets, **more}


def test_assets_that_a_text_refers_to_pass() -> None:
    check_assets(body({"<image:1>": IMAGE}))
    check_assets(body({"<image:1>": {"part": "asset-0"}}), ["asset-0"])
    check_assets(body(None))
    check_assets([])
    check_assets({"questions": {"q": {"criteria": {"a": "like @1"}}}, "assets": {"@1": IMAGE}})


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        (body({"<image:2>": IMAGE}), []),
        (body({"see": IMAGE}), []),
        (body({"<image:1>": IMAGE}), ["asset-0"]),
        (body(None), ["asset-0"]),
    ],
)
def test_what_nothing_refers_to_is_refused(data: Any, parts: list[str]) -> None:
    with pytest.raises(UnreferencedAsset):
        check_assets(data, parts)


@pytest.mark.parametrize(
    "assets",
    [
        {},
        [],
        {"<image:1>": "x"},
        {" ": IMAGE},
        {"<" * 1025: IMAGE},
        {"<image:1>": {}},
        {"<image:1>": IMAGE | {"part": "asset-0"}},
        {"<image:1>": {"part": "asset-1"}},
        {"<image:1>": {"part": 3}},
        {"<image:1>": {"part": ["x"]}},
        {"<image:1>": IMAGE | {"type": "video"}},
        {"<image:1>": IMAGE | {"format": "gif"}},
        {"<image:1>": IMAGE | {"format": []}},
        {"<image:1>": IMAGE | {"url": "x"}},
        {f"<image:{number}>": IMAGE for number in range(65)},
    ],
)
def test_malformed_assets_are_told(assets: Any) -> None:
    with pytest.raises(BadBody) as caught:
        check_assets(body(assets), ["asset-0"])
    assert not caught.value.malformed
