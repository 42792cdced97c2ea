"""Keywords that need not be spelled exactly: by edits, by shared n-grams, and by relevance (BM25).

Each looks at the distinct words of a text, of which a long text has far fewer than words.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
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
    found = words(text)
    return set(found) if length == 1 else {" ".join(found[i : i + length]) for i in range(len(found) - length + 1)}


def fuzzy(keywords: Sequence[str], edits: int) -> Callable[[str], Scores]:
    """1 for each keyword that occurs within its allowed edits (insert, delete, replace, swap), else 0."""
    parts = [" ".join(words(keyword)) for keyword in keywords]
    allowed = [allowed_edits(part, edits) for part in parts]
    lengths = [len(words(part)) for part in parts]
    alike = [(length, [i for i, one in enumerate(lengths) if one == length]) for length in sorted(set(lengths))]

    def score(text: str) -> Scores:
        result = [0.0] * len(parts)
        for length, numbers in alike:
            candidates = list(phrases(text, length))
            wanted = [parts[number] for number in numbers]
            away = process.cdist(wanted, candidates, scorer=OSA.distance, score_cutoff=edits, dtype=np.int32)
            for number, row in zip(numbers, away, strict=True):
                result[number] = float((row <= allowed[number]).any())
        return result

    return score


def ngram(keywords: Sequence[str], arity: int) -> Callable[[str], Scores]:
    """For each keyword the best share of n-grams (of characters) that it has in common with a phrase as long (0..1)."""
    parts = [tuple(words(keyword)) for keyword in keywords]
    lengths = [len(part) for part in parts]
    grams = [_grams(" ".join(part), arity) for part in parts]
    index: dict[int, dict[str, list[int]]] = {length: {} for length in lengths}
    for number, (length, own) in enumerate(zip(lengths, grams, strict=True)):
        for gram in own:
            index[length].setdefault(gram, []).append(number)
    known = {length: frozenset(numbers) for length, numbers in index.items()}

    def score(text: str) -> Scores:
        best = [0.0] * len(keywords)
        for length, numbers in index.items():
            for phrase in phrases(text, length):
                theirs = _grams(phrase, arity)
                shared: Counter[int] = Counter()
                for gram in theirs & known[length]:
                    shared.update(numbers[gram])
                for number, common in shared.items():
                    best[number] = max(best[number], common / (len(theirs) + len(grams[number]) - common))
        return best

    return score


def bm25(keywords: Sequence[str]) -> Callable[[str], Scores]:
    """For each keyword its BM25 score as a document, with the text as the query: a phrase counts word by word."""
    documents = [words(keyword) for keyword in keywords]
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
