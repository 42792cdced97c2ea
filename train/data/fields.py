"""Which directories of `evals`, tasks of `bigbench` and subjects of MMLU belong to which field."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

EVALS_FIELDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "biology": ("mendelian_inheritance", "dna_melting_calculation"),
        "business": ("accounting_audit", "finance", "finance_calc", "taxes", "stock_options", "financial-derivatives"),
        "chemistry": ("balance_chemical_equation", "ph_calculation", "smiles_to_formula"),
        "computer science": (
            "cissp-study-questions",
            "security_guide",
            "css-selectors",
            "csharp-linq",
            "python_list_comprehension",
            "test_comp_sci",
            "automata-and-complexity",
            "regex-match",
            "sql",
            "cybersecurity",
            "event_categories",
            "crontab",
            "hard_russian_computer_science_tasks",
            "japanese-itpassport-exam01",
        ),
        "economics": ("game_theory",),
        "engineering": (
            "beam_analysis",
            "resistor_ohm_calculator",
            "map-electronic-component-part-to-fact",
            "fcc_amateur_extra",
            "atpl_exams",
        ),
        "health": (
            "medmcqa",
            "heart-disease",
            "nutrition",
            "medication_dose",
            "russian_medical",
            "japanese-national-medical-exam01",
            "japanese-national-medical-exam02",
        ),
        "history": ("ordered-history-events", "born_first"),
        "law": (
            "illinois-law",
            "us_tort_law",
            "adultery-state-laws",
            "brazilian_laws",
            "singapore_data_protection_decisions",
            "utah_real_estate",
        ),
        "math": (
            "jee-math",
            "algebra_word_problems",
            "multistep-word-problems",
            "tricky-word-problems",
            "probability_questions",
            "probabilities-word-problems",
            "linear_equations",
            "math-derivatives",
            "geometry_puzzle",
            "determinant",
            "stats-tests",
            "math_for_5th-grader",
            "logic_and_probability",
        ),
        "philosophy": ("marxist_philosophy_exam", "moral_exceptQA", "logic-statements"),
        "psychology": ("emotional-intelligence",),
        "other": (
            "music_theory",
            "rock-climbing",
            "irony",
            "actors-sequence",
            "partially_solved_crossword_clues",
            "countries",
        ),
    }
)
BIGBENCH_FIELDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "biology": ("cryobiology_spanish", "human_organs_senses"),
        "chemistry": ("periodic_elements/subtask_0", "periodic_elements/subtask_1"),
        "computer science": ("code_line_description", "auto_debugging"),
        "math": ("elementary_math_qa/question_only", "identify_math_theorems"),
        "philosophy": (
            "simple_ethical_questions",
            "moral_permissibility",
            "logical_fallacy_detection",
            "hindu_knowledge",
        ),
        "physics": ("physics", "physical_intuition", "physics_questions"),
        "other": (
            "intent_recognition",
            "riddle_sense",
            "sports_understanding",
            "dark_humor_detection",
            "abstract_narrative_understanding/4_distractors",
            "similarities_abstraction",
        ),
    }
)
MMLU_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "abstract algebra": "math",
        "anatomy": "health",
        "astronomy": "physics",
        "business ethics": "business",
        "clinical knowledge": "health",
        "college biology": "biology",
        "college chemistry": "chemistry",
        "college computer science": "computer science",
        "college mathematics": "math",
        "college medicine": "health",
        "college physics": "physics",
        "computer security": "computer science",
        "conceptual physics": "physics",
        "econometrics": "economics",
        "electrical engineering": "engineering",
        "elementary mathematics": "math",
        "formal logic": "philosophy",
        "global facts": "other",
        "high school biology": "biology",
        "high school chemistry": "chemistry",
        "high school computer science": "computer science",
        "high school european history": "history",
        "high school geography": "other",
        "high school government and politics": "other",
        "high school macroeconomics": "economics",
        "high school mathematics": "math",
        "high school microeconomics": "economics",
        "high school physics": "physics",
        "high school psychology": "psychology",
        "high school statistics": "math",
        "high school us history": "history",
        "high school world history": "history",
        "human aging": "health",
        "human sexuality": "other",
        "international law": "law",
        "jurisprudence": "law",
        "logical fallacies": "philosophy",
        "machine learning": "computer science",
        "management": "business",
        "marketing": "business",
        "medical genetics": "health",
        "miscellaneous": "other",
        "moral disputes": "philosophy",
        "moral scenarios": "philosophy",
        "nutrition": "health",
        "philosophy": "philosophy",
        "prehistory": "history",
        "professional accounting": "business",
        "professional law": "law",
        "professional medicine": "health",
        "professional psychology": "psychology",
        "public relations": "business",
        "security studies": "other",
        "sociology": "other",
        "us foreign policy": "other",
        "virology": "health",
        "world religions": "philosophy",
    }
)
"""The subjects of MMLU in the fourteen fields, grouped as its authors did, and as MMLU-Pro names the groups."""
LONG_EVALS: Final = (
    "ballots",
    "us_tort_law",
    "illinois-law",
    "invoices",
    "consensus_summary",
    "logic-grid",
    "research-question-extraction",
    "singapore_data_protection_decisions",
    "utah_real_estate",
    "qa",
    "stats-tests",
)
"""Directories of `evals` with long texts."""
MOST: Final = 400
"""Prompts of one directory or task at most: none may drown the others."""

FEW: Final = 60
"""The same for what is one form filled in again and again."""
FORMS: Final = frozenset(
    {
        "brazilian_laws",
        "event_categories",
        "finance_calc",
        "heart-disease",
        "moral_permissibility",
        "nutrition",
        "ordered-history-events",
        "periodic_elements/subtask_0",
        "periodic_elements/subtask_1",
        "resistor_ohm_calculator",
        "smiles_to_formula",
        "sql",
        "taxes",
        "born_first",
        "linear_equations",
        "determinant",
        "balance_chemical_equation",
        "beam_analysis",
    }
)
