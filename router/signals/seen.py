"""One request as compiled rules see it: its facts, and what the shared automata found in its text."""

from __future__ import annotations

from router.signals.facts import RequestFacts
from router.signals.languages import Language, language_of
from router.signals.lazy import lazy
from router.signals.literals import NOTHING, Found, Literals
from router.signals.patterns import NONE, Hits, Patterns


class Seen:
    """Everything is worked out when the first rule wants it, and once."""

    def __init__(self, facts: RequestFacts, literals: Literals, patterns: Patterns) -> None:
        self.facts = facts
        self._literals = literals
        self._patterns = patterns

    @lazy
    def hits(self) -> Hits:
        """What one pass over the text says: which expressions match, and which literals may occur."""
        return self._patterns.find(self.facts)

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
