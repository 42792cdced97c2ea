"""Keywords that need not be spelled exactly: by edits, by shared n-grams, and by relevance (BM25).

Each looks at the distinct words of a text, of which a long text has far fewer than words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from rapidfuzz import process
from rapidfuzz.distance import OSA

from router.signals.scripts import words

_K1: Final = 1.2
_B: Final = 0.75
_LETTERS_PER_EDIT: Final = 4

Scores = list[float]
"""A number for each keyword of a rule; what is enough is the rule's business."""


def allowed_edits(keyword: str, edits: int) -> int:
    """How many edits a keyword may be away: one for each four letters at most, so that short words stay themselves."""
    return min(edits, len(keyword) // _LETTERS_PER_EDIT)


def phrases(text: str, length: int) -> set[str]:
    """The distinct runs of so many words."""
    found = list(words(text))
    return set(found) if length == 1 else {" ".join(found[i : i + length]) for i in range(len(found) - length + 1)}


def fuzzy(keywords: Sequence[str], edits: int) -> Callable[[str], Scores]:
    """1 for each keyword that occurs within its allowed edits (insert, delete, replace, swap), else 0."""
    parts = [tuple(words(keyword)) for keyword in keywords]
    plans = [(" ".join(part), len(part), allowed_edits(" ".join(part), edits)) for part in parts]

    def score(text: str) -> Scores:
        made: dict[int, set[str]] = {}
        result: Scores = []
        for keyword, length, allowed in plans:
            candidates = made.get(length)
            if candidates is None:
                candidates = made[length] = phrases(text, length)
            hit = keyword in candidates or (
                allowed > 0
                and process.extractOne(keyword, candidates, scorer=OSA.distance, score_cutoff=allowed) is not None
            )
            result.append(1.0 if hit else 0.0)
        return result

    return score


def ngram(keywords: Sequence[str], arity: int) -> Callable[[str], Scores]:
    """For each keyword the best share of n-grams (of characters) that it has in common with a phrase as long (0..1)."""
    parts = [tuple(words(keyword)) for keyword in keywords]
    lengths = [len(part) for part in parts]
    grams = [_grams(" ".join(part), arity) for part in parts]
    index: dict[tuple[int, str], list[int]] = {}
    for number, (length, own) in enumerate(zip(lengths, grams, strict=True)):
        for gram in own:
            index.setdefault((length, gram), []).append(number)

    def score(text: str) -> Scores:
        best = [0.0] * len(keywords)
        for length in set(lengths):
            for phrase in phrases(text, length):
                theirs = _grams(phrase, arity)
                shared: Counter[int] = Counter()
                for gram in theirs:
                    shared.update(index.get((length, gram), ()))
                for number, common in shared.items():
                    best[number] = max(best[number], common / (len(theirs) + len(grams[number]) - common))
        return best

    return score


def bm25(keywords: Sequence[str]) -> Callable[[str], Scores]:
    """For each keyword its BM25 score as a document, with the text as the query: a phrase counts word by word."""
    documents = [list(words(keyword)) for keyword in keywords]
    average = sum(map(len, documents)) / len(documents) or 1.0
    spread = Counter(term for document in documents for term in set(document))
    rare = {term: math.log(1 + (len(documents) - n + 0.5) / (n + 0.5)) for term, n in spread.items()}

    def weight(document: Sequence[str]) -> dict[str, float]:
        norm = _K1 * (1 - _B + _B * len(document) / average)
        return {term: rare[term] * n * (_K1 + 1) / (n + norm) for term, n in Counter(document).items()}

    weights = [weight(document) for document in documents]

    def score(text: str) -> Scores:
        asked = phrases(text, 1)
        return [sum(value for term, value in own.items() if term in asked) for own in weights]

    return score


def _grams(text: str, arity: int) -> frozenset[str]:
    padded = f" {text} "
    if len(padded) <= arity:
        return frozenset((padded,))
    return frozenset(padded[i : i + arity] for i in range(len(padded) - arity + 1))
