"""Which language a text is in: py3langid, a naive Bayes model over byte n-grams that comes with its package.

Chosen because it is small (numpy and one file), works offline, and gives probabilities. A bounded beginning of a
text is enough for it, so a long text costs no more than a short one.
"""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from py3langid import langid

from router.config.heuristics import LANGUAGES

SAMPLE: Final = 512
"""How many characters of a text are read."""


class Language(NamedTuple):
    """The most likely language by its code, with its probability."""

    code: str
    probability: float


@cache
def identifier() -> langid.LanguageIdentifier:
    """The model, read when the first rule needs it: that takes a second."""
    loaded = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
    loaded.set_languages(LANGUAGES)
    return loaded


def language_of(text: str) -> Language | None:
    """The language of a text; None when it begins without letters."""
    sample = text[:SAMPLE]
    if not any(character.isalpha() for character in sample):
        return None
    code, probability = identifier().classify(sample)
    return Language(str(code), min(max(float(probability), 0.0), 1.0))
