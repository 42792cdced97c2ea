"""`assets` of a System One body: whether they are well formed, sent along, and meant by any text of the request.

No model that is served here looks at one yet; what is wrong with them is told before that they cannot be read.

Source: protocol, "Base System One request" (`assets`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from .body import SHOWN, BadBody, Loc, Problem

_FIELDS = frozenset({"type", "format", "data_base64", "part"})
_FORMATS = (None, "png", "jpg", "jpeg")
_MOST_REFERENCE = 1024
_MOST = 64
"""As many as a form has parts. Each is looked for in every text, so that their number must have a bound."""


class UnreferencedAsset(Exception):
    """An asset, or a part of the form, that no text of the request stands for."""


def check_assets(data: Any, parts: Collection[str] = ()) -> None:
    """Check a body's assets against its texts and the parts of its form.

    Raises BadBody for malformed assets and UnreferencedAsset for one that nothing refers to.
    """
    assets = data.get("assets") if isinstance(data, dict) else None
    if assets is None:
        if parts:
            raise UnreferencedAsset
        return
    if not isinstance(assets, dict) or not assets:
        raise BadBody([Problem(("body", "assets"), "must be a non-empty object of assets by reference", "object_type")])
    if len(assets) > _MOST:
        raise BadBody([Problem(("body", "assets"), f"at most {_MOST} assets", "too_long")])
    problems: list[Problem] = []
    named: set[str] = set()
    for reference, asset in assets.items():
        loc: Loc = ("body", "assets", reference[:SHOWN])
        if not reference.strip() or len(reference.encode()) > _MOST_REFERENCE:
            problems.append(Problem(loc, f"a reference is text of 1 to {_MOST_REFERENCE} bytes", "value_error"))
        elif (problem := _wrong(asset, parts)) is not None:
            problems.append(Problem(loc, problem, "asset_type"))
        elif "part" in asset:
            named.add(asset["part"])
    if problems:
        raise BadBody(problems)
    missing = set(assets)
    for text in _texts({key: value for key, value in data.items() if key != "assets"}):
        missing = {reference for reference in missing if reference not in text}
        if not missing:
            break
    if missing or set(parts) - named:
        raise UnreferencedAsset


def _wrong(asset: Any, parts: Collection[str]) -> str | None:
    if not isinstance(asset, dict) or asset.keys() - _FIELDS:
        return "must be an object with type, format, and data_base64 or part"
    if asset.get("type", "image") != "image" or asset.get("format") not in _FORMATS:
        return "must be an image as png, jpg or jpeg"
    if ("data_base64" in asset) == ("part" in asset):
        return "give exactly one of data_base64 and part"
    source = asset.get("data_base64", asset.get("part"))
    if not isinstance(source, str) or not source:
        return "data_base64 and part are text"
    if "part" in asset and source not in parts:
        return "names a part that was not sent"
    return None


def _texts(value: Any) -> Iterator[str]:
    """Every text in a JSON value but its keys."""
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            left.extend(item.values())
        elif isinstance(item, list):
            left.extend(item)
