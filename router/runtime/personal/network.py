"""E-mail addresses and addresses of machines that can belong to a person.

An address of a domain that is reserved for examples counts, unless its first part is a placeholder too: who tries
Pointsman out writes a name at example.com and expects it found. Addresses of machines count where anybody on the
internet could be behind them: not loopback, private, link-local, multicast or reserved ones, nor those for documents.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Final

from .finding import ADDRESS, EMAIL, Cue, Finding, Seen
from .shadow import LETTER, WORD, Words, alone, expression

_LOCAL: Final = 64
_LABEL: Final = r"[A-Za-z0-9\x02](?:[A-Za-z0-9\x02-]{0,61}[A-Za-z0-9\x02])?"
_EMAIL: Final = expression(
    rf"[A-Za-z0-9\x02_%+'.-]+@(?:{_LABEL}\.){{1,8}}(?:[A-Za-z\x02]{{2,24}}|xn--[A-Za-z0-9]{{2,59}})"
)
_USER_OF_URL: Final = Words(r"://[^\s/@?#]*$")
_RESERVED: Final = frozenset({"test", "invalid", "localhost", "local", "internal", "lan", "localdomain"})
_FILES: Final = frozenset(
    {
        *("png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "css", "js", "mjs", "ts", "tsx", "jsx", "py"),
        *("json", "yaml", "yml", "html", "htm", "md", "txt", "zip", "gz", "tgz", "lock"),
    }
)
_EXAMPLES: Final = ("example.com", "example.org", "example.net", "domain.com", "domain.tld", "email.com", "company.com")
_PLACEHOLDERS: Final = frozenset(
    {
        *("user", "users", "username", "you", "your", "yourname", "your.name", "your-name", "your_name"),
        *("your.email", "youremail", "name", "someone", "somebody", "anyone", "test", "tester", "testing"),
        *("foo", "bar", "baz", "me", "my", "email", "mail", "address", "example", "sample", "a", "b", "x", "y"),
        *("abc", "xyz", "user1", "user2", "admin", "firstname.lastname", "first.last", "nobody", "info"),
        *("hello", "contact", "support", "alias", "local-part", "recipient", "sender"),
    }
)
_MACHINES: Final = frozenset(
    {"noreply", "no-reply", "donotreply", "do-not-reply", "mailer-daemon", "postmaster", "git"}
)

_IPV4: Final = expression(r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}")
_IPV6: Final = expression(r"[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}")
_VERSION: Final = Words(
    r"(?i)(?:\b(?:version|versions|ver|v|release|rel|build|chapter|section|sec|clause|paragraph|appendix|protocol|tag"
    r"|firmware|kernel|driver|update|upgrade|patch|kapitel|abschnitt|capítulo|chapitre)[.:]?\s{0,2}[\"'=]{0,2}"
    r"|(?:oid|objectidentifier)\s?\(?[\"']?|[=<>~^!]=?\s?|[a-z][-_@/]|§\s?|\bto )$"
)
_SMALL: Final = 20
"""Four numbers up to this are a version unless a word says that they are an address."""
_HOST: Final = Cue(r"\bips?\b|\bipv4|address|host|server|client|\bdns\b|ping|ssh|://|remote|\bfrom\b|login|peer")
_SCHEME: Final = Words(r"(?i)\b[a-z][a-z0-9+.-]{1,12}://$")


def emails(seen: Seen) -> Iterator[Finding]:
    """E-mail addresses of persons, as far as their form tells."""
    if b"@" not in seen.data:
        return
    for match in _EMAIL.finditer(seen.data):
        start, end = match.span()
        local, _, domain = seen.text[start:end].lower().rpartition("@")
        kept = local.lstrip("'.-")
        start += len(local) - len(kept)
        if not 0 < len(kept) <= _LOCAL or kept.endswith(".") or ".." in kept or _goes_on(seen.data, start, end):
            continue
        if not _nobody(kept, domain) and not _USER_OF_URL.search(seen.before(start, 96)):
            yield Finding(start, end, EMAIL, "email")


def _goes_on(data: bytes, start: int, end: int) -> bool:
    """Whether it is a part of something longer: another `@`, a word, or the way of `git@host:path`."""
    if end < len(data) and (data[end] in WORD or data[end] in b"@"):
        return True
    if start > 0 and (data[start - 1] in WORD or data[start - 1] in b"@"):
        return True
    return end + 1 < len(data) and data[end] in b":" and (data[end + 1] in WORD and data[end + 1] != LETTER)


def _nobody(local: str, domain: str) -> bool:
    end = domain.rpartition(".")[2]
    if end in _RESERVED or end in _FILES or local in _MACHINES:
        return True
    return (domain in _EXAMPLES or end == "example") and local.partition("+")[0] in _PLACEHOLDERS


def addresses(seen: Seen) -> Iterator[Finding]:
    """Global IPv4 and IPv6 addresses."""
    if not seen.has_digits:
        return
    if b"." in seen.data:
        for match in _IPV4.finditer(seen.data):
            start, end = match.span()
            if alone(seen.data, start, end) and not _is_version(seen, start, end) and _public(seen, start, end):
                yield Finding(start, end, ADDRESS, "ipv4")
    if b":" in seen.data:
        for match in _IPV6.finditer(seen.data):
            start, end = match.span()
            written = seen.data[start:end]
            # What the internet routes begins with 2 or 3: `::2` and `dead::beef` are code.
            if (
                written[:1] in b"23"
                and written[4:5] == b":"
                and alone(seen.data, start, end)
                and _public(seen, start, end)
            ):
                yield Finding(start, end, ADDRESS, "ipv6")


def _is_version(seen: Seen, start: int, end: int) -> bool:
    """Four numbers that count releases or chapters."""
    before = seen.before(start, 24)
    if end < len(seen.data) and seen.data[end] in b"-" and end + 1 < len(seen.data) and seen.data[end + 1] in WORD:
        return True
    if _VERSION.search(before) and not _SCHEME.search(before):
        return True
    small = all(int(part) <= _SMALL for part in seen.data[start:end].split(b"."))
    return small and not _HOST.before(seen, start)


def _public(seen: Seen, start: int, end: int) -> bool:
    try:
        address = ipaddress.ip_address(seen.data[start:end].decode("latin-1"))
    except ValueError:
        return False
    return address.is_global and not address.is_multicast
