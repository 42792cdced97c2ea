"""Which language a text is in: py3langid, 97 languages, a naive Bayes model over byte n-grams that ships with it.

Chosen because it is small (numpy and one file of 1 MB), works offline, and gives probabilities; a bounded beginning of
a text is enough for it, so a long text costs no more than a short one.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple, cast

from py3langid import langid

SAMPLE: Final = 2048
"""How many characters of a text are read."""


class Language(NamedTuple):
    """The most likely language by its code, with its probability."""

    code: str
    probability: float


@cache
def _identifier() -> langid.LanguageIdentifier:
    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)


@cache
def known_languages() -> frozenset[str]:
    """The ISO 639-1 codes that can be told apart."""
    return frozenset(_identifier().labels)


def language_of(text: str) -> Language | None:
    """The language of a text; None when it holds no letters."""
    sample = text[:SAMPLE]
    if not any(character.isalpha() for character in sample):
        return None
    code, probability = _identifier().classify(sample)
    return Language(code, min(max(float(cast(float, probability)), 0.0), 1.0))
