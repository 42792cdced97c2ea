"""One request as compiled rules see it: its facts, and what the shared automata found in its text."""

from __future__ import annotations

from router.signals.facts import RequestFacts
from router.signals.languages import Language, language_of
from router.signals.lazy import lazy
from router.signals.literals import NOTHING, Found, Literals
from router.signals.patterns import NONE, Hits


class Seen:
    """`hits` is what one pass over the text said: which expressions match, and which literals may occur.

    Everything else is worked out when the first rule wants it, and once.
    """

    def __init__(self, facts: RequestFacts, literals: Literals, hits: Hits) -> None:
        self.facts = facts
        self.hits = hits
        self._literals = literals

    @lazy
    def words(self) -> Found:
        """Literals of all rules."""
        groups = self.hits.words
        return self._literals.find(self.facts, groups) if groups else NOTHING

    @lazy
    def language(self) -> Language | None:
        """The language of the current turn."""
        return language_of(self.facts.text)


class Empty(Seen):
    """A request in whose text nothing is found, for what a rule says then. Its facts are not to be read."""

    def __init__(self) -> None:
        self.__dict__.update(hits=NONE, words=NOTHING)
