"""Legal text as it is pasted into a request: clauses, policies, statutes and the facts of cases, with what is asked."""

from __future__ import annotations

import random
from typing import Final

from train.data.slots import fill
from train.data.words import listed, section

_KINDS: Final = ("contract", "policy", "statute", "facts")


def passage(rng: random.Random) -> str:
    """A passage of one kind, with a question before or behind it, or none."""
    (kind,) = rng.choices(_KINDS, (4, 2, 2, 4))
    sentences = listed("clauses", kind)
    parts = rng.sample(sentences, min(len(sentences), rng.choice((1, 1, 2, 3, 4))))
    ask = rng.choice(listed("clauses", "asks"))
    body = " ".join(parts)
    text = rng.choice((f"{body} {ask}", f"{ask}\n\n{body}", f"{body}\n\n{ask}", f'{ask} "{body}"', body))
    return fill(text, section("clauses", "slots"), rng)
