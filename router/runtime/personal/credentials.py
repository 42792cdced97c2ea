"""Keys, tokens and passwords: by a vendor's prefix, by where they stand, or as a part of a URL.

What is written to be replaced (`<token>`, `${TOKEN}`, `your-key-here`, `xxxx`) is none, and a hash is none unless what
it is assigned to is called a secret.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from typing import Final

from .finding import SECRET, Finding, Seen
from .shadow import WORD, Words, expression

_VENDOR: Final = expression(
    r"sk-[A-Za-z0-9_-]{20,}|(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,}"
    r"|gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,}|glpat-[A-Za-z0-9_-]{20,}"
    r"|(?:AKIA|ASIA)[A-Z2-7]{16}|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{30,}|GOCSPX-[A-Za-z0-9_-]{28}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{20,}"
    r"|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,}|hf_[A-Za-z0-9]{30,}|dop_v1_[0-9a-f]{64}"
    r"|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|dapi[0-9a-f]{32}|gsk_[A-Za-z0-9]{40,}|xai-[A-Za-z0-9]{60,}"
    r"|pplx-[A-Za-z0-9]{40,}|r8_[A-Za-z0-9]{37}|hvs\.[A-Za-z0-9_-]{24,}|lin_api_[A-Za-z0-9]{32,}|ntn_[A-Za-z0-9]{40,}"
    r"|PMAK-[0-9a-f]{24}-[0-9a-f]{34}|ATATT3[A-Za-z0-9_=-]{60,}|sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}"
    r"|AGE-SECRET-KEY-1[A-Z0-9]{58}|[0-9]{8,10}:AA[A-Za-z0-9_-]{33}"
)
_SIGNED: Final = expression(
    # Each by itself: of several that wait for their end at once, every search would read on to the end of the text.
    r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"
)
_SENDING: Final = expression(r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}")
_BLOCK: Final = expression(r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_BLOCK_END: Final = expression(r"-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_URL: Final = expression(
    r"[a-z][a-z0-9+.-]{1,20}://([^\s/?#:@\"'<>]{0,64}:[^\s/?#@\"'<>]{1,128})@[A-Za-z0-9\x02\[]", ignore_case=True
)
_ASSIGNED: Final = expression(
    r"(?:password|passwd|passphrase|passwort|pwd|secret|secret[_-]?key|api[_-]?key|apikey|access[_-]?key|access[_-]?token"
    r"|auth[_-]?token|refresh[_-]?token|bearer[_-]?token|client[_-]?secret|private[_-]?key|account[_-]?key|token)"
    r"[\"']?[ \t]{0,2}(?::=|[:=]|\bis\b)[ \t]{0,2}[\"'`]?([^\s\"'`,;<>{}()]{6,})",
    ignore_case=True,
)
_BEARER: Final = expression(r"(?:bearer|basic|token)[ \t]{1,2}([A-Za-z0-9+/=_.~-]{20,})", ignore_case=True)
_PLACEHOLDER: Final = Words(
    r"(?i)your|example|placeholder|change.?me|xxx|\*\*\*|\.\.\.|dummy|redacted|insert|replace|<|>|\$\{|\$[A-Z]|%\(|\{\{"
    r"|encoded|environ|getenv|process\.env|_here|abcdef0?1?2?3?4?5?$|^(?:test|none|null|true|false|string|password\d{0,3}|secret)$"
)
_PATH: Final = Words(r"[A-Za-z_]\w*(?:\[.*|(?:(?:\.|::|->)[A-Za-z_]\w*)+.*)|.*&[a-z]+")
"""A value that is looked up elsewhere: `settings.key2`."""
_PAIR: Final = Words(
    r"(?i)\W*(?:user(?:name)?|usr|login|name|me)\W*:\W*(?:pass(?:word|wd)?|pw|pwd|secret)\W*|.{1,3}:.{1,3}"
)
"""User and password that stand for others."""
_KEY: Final = Words(r"^(?:\\n|\\r|\s|[A-Za-z0-9+/=:,.-]){40}")
_PUBLIC: Final = Words(r"(?i)public\w{0,8}$")
_LEAST_BITS: Final = 2.5
"""Bits a character of a key; English words and repeated fillers have less, or no digits."""


def secrets(seen: Seen) -> Iterator[Finding]:
    """Everything that lets its bearer in."""
    yield from _blocks(seen)
    yield from _vendors(seen)
    if b"://" in seen.data:
        for match in _URL.finditer(seen.data):
            start, end = match.span(1)
            pair = seen.text[start:end]
            if not _PAIR.fullmatch(pair) and not _PLACEHOLDER.search(pair):
                yield Finding(start, end, SECRET, "url_credentials")
    for expression_, rule, least in ((_ASSIGNED, "assigned_secret", 6), (_BEARER, "bearer_token", 20)):
        for match in expression_.finditer(seen.data):
            start, end = match.span(1)
            end -= len(seen.text[start:end]) - len(seen.text[start:end].rstrip(".:!?)]"))
            said = seen.before(match.start())
            if end - start >= least and _random(seen.text[start:end]) and not _PUBLIC.search(said):
                yield Finding(start, end, SECRET, rule)


def _blocks(seen: Seen) -> Iterator[Finding]:
    """Private keys, to the end of the block, or of the text where it is cut."""
    if b"PRIVATE KEY" not in seen.data:
        return
    ends = [match.end() for match in _BLOCK_END.finditer(seen.data)]
    last = 0
    for match in _BLOCK.finditer(seen.data):
        if match.start() >= last and _KEY.search(seen.text[match.end() : match.end() + 96]):
            place = bisect_right(ends, match.end())
            last = ends[place] if place < len(ends) else len(seen.data)
            yield Finding(match.start(), last, SECRET, "private_key")


def _vendors(seen: Seen) -> Iterator[Finding]:
    for match in itertools.chain.from_iterable(form.finditer(seen.data) for form in (_VENDOR, _SIGNED, _SENDING)):
        start, end = match.span()
        if (start > 0 and (seen.data[start - 1] in WORD or seen.data[start - 1] in b"-")) or (
            end < len(seen.data) and seen.data[end] in WORD
        ):
            continue
        key = seen.text[start:end]
        if any(char.isdigit() for char in key) and not _PLACEHOLDER.search(key) and _bits(key) >= _LEAST_BITS:
            yield Finding(start, end, SECRET, "vendor_key")


def _random(value: str) -> bool:
    """Whether a value looks drawn, or at least chosen, and not like a word, a call or a placeholder."""
    if _PLACEHOLDER.search(value) or not any(char.isdigit() for char in value) or value.isdigit():
        return False
    return any(char.isalpha() for char in value) and _bits(value) >= _LEAST_BITS and not _PATH.fullmatch(value)


def _bits(value: str) -> float:
    """Entropy of its characters, in bits each."""
    size = len(value)
    return -sum(count / size * math.log2(count / size) for count in Counter(value).values())
