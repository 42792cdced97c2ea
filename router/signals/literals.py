"""Every literal of a recipe's rules in one automaton, so that a text is read once however many keywords there are.

A literal is found only as whole words: a side of it that is a letter or digit must not go on in the text, except in
scripts that put no spaces between words. So `DAN` is not in `redundant`, and `密码` is in `我的密码是`.

Aho-Corasick is pyahocorasick's: C, no dependencies, about 15 ms for a megabyte and a thousand words.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

import ahocorasick

from router.signals.facts import RequestFacts
from router.signals.folding import fold, space
from router.signals.loosely import any_of
from router.signals.scripts import joins

_FEW: Final = 24
"""So many literals are sooner looked for one by one, by the fast search of strings."""
_GROUPS: Final = 4
"""Into so many groups they are put: only those of which one may occur are looked for."""


class Found(NamedTuple):
    """How often each literal occurs, by its number, and which sequences occur in order."""

    counts: Mapping[int, int]
    sequences: frozenset[int]


NOTHING: Final = Found({}, frozenset())


class _Literal(NamedTuple):
    number: int
    length: int
    left: bool
    right: bool


class Literals:
    """Literals collected from rules, then `compile`d once. Not to be added to afterwards."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bool], int] = {}
        self._sequences: list[tuple[int, ...]] = []
        self._scans: list[tuple[bool, ahocorasick.Automaton]] = []
        self._waiting: dict[int, list[int]] = {}
        self._few: list[list[tuple[str, bool, _Literal]]] = []

    def add(self, text: str, *, case_sensitive: bool) -> int:
        """The number of a literal. Raises ValueError for one without anything to find."""
        plain = _prepared(text, case_sensitive=case_sensitive)
        if not plain:
            raise ValueError("a literal needs at least one character")
        return self._known.setdefault((plain, case_sensitive), len(self._known))

    def add_sequence(self, texts: Sequence[str], *, case_sensitive: bool) -> int:
        """The number of a sequence: literals that must occur one after the other."""
        self._sequences.append(tuple(self.add(text, case_sensitive=case_sensitive) for text in texts))
        return len(self._sequences) - 1

    def of_sequence(self, sequence: int) -> Sequence[int]:
        """The literals of a sequence."""
        return self._sequences[sequence]

    def compile(self) -> None:
        """Build the automata: one, and a second only if some literals tell capital letters from small ones."""
        for sequence, numbers in enumerate(self._sequences):
            for number in set(numbers):
                self._waiting.setdefault(number, []).append(sequence)
        if len(self._known) <= _FEW and not self._sequences:
            each = [(text, sensitive, _literal(text, number)) for (text, sensitive), number in self._known.items()]
            size = -(-len(each) // _GROUPS) or 1
            self._few = [each[start : start + size] for start in range(0, len(each), size)]
            return
        for sensitive in (False, True):
            automaton = ahocorasick.Automaton()
            for (text, case_sensitive), number in self._known.items():
                if case_sensitive is sensitive:
                    automaton.add_word(text, _literal(text, number))
            if len(automaton):
                automaton.make_automaton()
                self._scans.append((sensitive, automaton))

    @property
    def loosely(self) -> Sequence[str]:
        """For each group of literals an expression that matches, among others, wherever one of them occurs."""
        if self._few:
            return [any_of((text, sensitive) for text, sensitive, _ in group) for group in self._few]
        return [any_of(self._known)] if self._known else []

    def find(self, facts: RequestFacts, groups: Iterable[int]) -> Found:
        """Everything that occurs in one request's text, given the groups of which something may."""
        if self._few:
            return Found(self._one_by_one(facts, groups), NOTHING.sequences)
        counts: dict[int, int] = {}
        progress = [0] * len(self._sequences)
        ends = [0] * len(self._sequences)
        for sensitive, automaton in self._scans:
            text = facts.spaced if sensitive else facts.folded
            for end, literal in automaton.iter(text):
                number, start = literal.number, end - literal.length + 1
                if not _is_whole(text, start, end + 1, literal):
                    continue
                counts[number] = counts.get(number, 0) + 1
                for sequence in self._waiting.get(number, ()):
                    numbers, place = self._sequences[sequence], progress[sequence]
                    if place < len(numbers) and numbers[place] == number and start >= ends[sequence]:
                        progress[sequence], ends[sequence] = place + 1, end + 1
        whole = (i for i, numbers in enumerate(self._sequences) if progress[i] == len(numbers))
        return Found(counts, frozenset(whole))

    def _one_by_one(self, facts: RequestFacts, groups: Iterable[int]) -> dict[int, int]:
        counts: dict[int, int] = {}
        for written, sensitive, literal in chain.from_iterable(self._few[group] for group in groups):
            text = facts.spaced if sensitive else facts.folded
            start = text.find(written)
            while start >= 0:
                if _is_whole(text, start, start + literal.length, literal):
                    counts[literal.number] = counts.get(literal.number, 0) + 1
                start = text.find(written, start + 1)
        return counts


def _literal(text: str, number: int) -> _Literal:
    return _Literal(number, len(text), joins(text[0]), joins(text[-1]))


def _is_whole(text: str, start: int, end: int, literal: _Literal) -> bool:
    """Whether an occurrence is not part of a longer word."""
    if literal.left and start and joins(text[start - 1]):
        return False
    return not (literal.right and end < len(text) and joins(text[end]))


def _prepared(text: str, *, case_sensitive: bool) -> str:
    composed = unicodedata.normalize("NFC", text)
    return space(composed) if case_sensitive else fold(composed)
