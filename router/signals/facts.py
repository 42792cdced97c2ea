"""What heuristic rules read of one request. Everything is worked out when the first rule wants it, and once."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from router.signals.folding import fold, space
from router.signals.lazy import lazy
from router.wire.counting import Counts, count
from router.wire.request import LlmRequest
from router.wire.state import user_text

USER_HEADER: Final = "x-authz-user-id"
GROUPS_HEADER: Final = "x-authz-user-groups"

_MOST_ENTRIES: Final = 32
_LONGEST_KEY: Final = 128
_LONGEST_VALUE: Final = 1024


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks, as a trusted peer says."""

    user: str | None
    groups: frozenset[str]


NOBODY: Final = Identity(None, frozenset())


class RequestFacts:
    """One request as heuristic rules see it. `headers` are those of the head, with lower-case names.

    `trusted`: the peer that sent the request may say who asks. Without it, identity headers are not looked at.
    """

    def __init__(self, request: LlmRequest, headers: Mapping[str, str] | None = None, *, trusted: bool = False) -> None:
        self._request = request
        self._headers = headers or {}
        self._trusted = trusted

    @lazy
    def written(self) -> str:
        """The user's own words of the current turn as they came."""
        return user_text(self._request)

    @lazy
    def raw(self) -> bytes:
        """`written` in UTF-8. A lone half of a surrogate pair, which has no UTF-8 form, becomes a question mark."""
        self.__dict__["written"] = written = user_text(self._request)
        return written.encode("utf-8", "replace")

    def is_composed(self, raw: bytes) -> None:
        """Somebody has looked at the characters of `written`, which is `raw`, and found them composed."""
        self.encoded = raw

    @lazy
    def text(self) -> str:
        """`written` composed (NFC), so that one word has one spelling."""
        if "encoded" in self.__dict__ or self.written.isascii():
            return self.written
        return unicodedata.normalize("NFC", self.written)

    @lazy
    def spaced(self) -> str:
        """`text` with every run of white space as one space: a phrase may go over a line's end."""
        return space(self.text)

    @lazy
    def folded(self) -> str:
        """The same without differences of case."""
        return fold(self.text)

    @lazy
    def encoded(self) -> bytes:
        """`text` in UTF-8, as `raw`."""
        return self.text.encode("utf-8", "replace")

    @lazy
    def counts(self) -> Counts:
        """The shape of the whole request."""
        return count(self._request)

    @lazy
    def metadata(self) -> Mapping[str, str]:
        """The request's `metadata`: texts only, and no more of them than the bounds allow. The client's own words."""
        written: Any = self._request.outline.get("metadata")
        if type(written) is not dict:
            return {}
        kept: dict[str, str] = {}
        for key, value in written.items():
            if len(kept) == _MOST_ENTRIES:
                break
            if type(value) is str and _bytes(key) <= _LONGEST_KEY and _bytes(value) <= _LONGEST_VALUE:
                kept[key] = value
        return kept

    @lazy
    def identity(self) -> Identity:
        """Who asks; nobody unless the peer is trusted to say so."""
        if not self._trusted:
            return NOBODY
        user = self._headers.get(USER_HEADER, "").strip() or None
        groups = (group.strip() for group in self._headers.get(GROUPS_HEADER, "").split(","))
        return Identity(user, frozenset(group for group in groups if group))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
