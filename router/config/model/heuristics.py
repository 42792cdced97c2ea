"""`recipes[].signals`: rules that the router computes by itself, without a model."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from router.config.heuristics import LANGUAGES
from router.config.model.base import Model, Name, RuleName, Text, wrong
from router.config.model.bounds import Bounds, Probability
from router.config.problems import nearest

Words = Annotated[list[Text], Field(min_length=1, max_length=10_000)]


def _known_language(value: Any) -> Any:
    if isinstance(value, str) and "${" not in value and value not in LANGUAGES:
        guess = nearest(value, LANGUAGES)
        hint = f'did you mean "{guess}"?' if guess else f"known: {', '.join(LANGUAGES)}"
        raise wrong("must be the ISO 639-1 code of a language that can be told apart", hint)
    return value


def _tokens(value: Any) -> Any:
    """A number of tokens: 32000, "32000", "32K" or "1M"."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return value
    text = str(value).strip()
    factor = {"K": 1_000, "M": 1_000_000}.get(text[-1:].upper(), 1)
    digits = text[:-1] if factor > 1 else text
    try:
        number = float(digits) * factor
    except ValueError:
        number = -1.0
    if not (number >= 0 and number == int(number) and number <= 10**12):
        raise wrong("must be a number of tokens, such as 4000, 32K or 1M")
    return int(number)


Tokens = Annotated[int, BeforeValidator(_tokens, json_schema_input_type=int | str)]


class KeywordRule(Model):
    """Words and phrases in the current user turn."""

    name: RuleName = Field(description="Unique in its family; conditions and projections refer to it.")
    description: str | None = Field(None, description="For people.")
    operator: Literal["AND", "OR", "NOR"] = Field("OR", description="All of the keywords, any, or none.")
    keywords: Words = Field(description="Words and phrases; regular expressions with method regex.")
    method: Literal["regex", "exact", "fuzzy", "bm25", "ngram"] = Field(
        "regex", description="How keywords are found. A regex without special characters is found as whole words."
    )
    case_sensitive: bool = Field(False, description="Whether capital letters differ from small ones.")
    fuzzy_match: bool | None = Field(None, description="true is another way to write method: fuzzy.")
    fuzzy_threshold: Annotated[int, Field(ge=0, le=8)] | None = Field(
        None, description="For fuzzy: most edits, 2 if absent; never more than one for each four letters."
    )
    bm25_threshold: Annotated[float, Field(ge=0)] | None = Field(
        None, description="For bm25: least score of a keyword; 0.1 if absent."
    )
    ngram_threshold: Probability | None = Field(
        None, description="For ngram: least share of common n-grams; 0.4 if absent."
    )
    ngram_arity: Annotated[int, Field(ge=1, le=8)] | None = Field(
        None, description="For ngram: characters of an n-gram; 3 if absent."
    )


class LanguageRule(Model):
    """The language of the current user turn."""

    name: Annotated[RuleName, BeforeValidator(_known_language)] = Field(
        description="Code of the language (ISO 639-1), such as en, de or zh."
    )
    description: str | None = Field(None, description="For people.")
    threshold: Probability = Field(0.3, description="Least probability of that language.")


class ContextRule(Model):
    """How many tokens the whole request needs at least, by counting bytes."""

    name: RuleName = Field(description="Unique in its family; conditions and projections refer to it.")
    description: str | None = Field(None, description="For people.")
    min_tokens: Tokens | None = Field(None, description="From so many tokens on, such as 4000 or 32K; 0 if absent.")
    max_tokens: Tokens | None = Field(None, description="Up to so many tokens; without bound if absent.")


class StructureSource(Model):
    """What is looked for."""

    type: Literal["regex", "keyword_set", "sequence", "text_bytes"] = Field(description="Kind of the source.")
    pattern: Text | None = Field(None, description="For regex: the expression (RE2).")
    keywords: Words | None = Field(None, description="For keyword_set: words and phrases.")
    sequences: Annotated[list[Annotated[list[Text], Field(min_length=2)]], Field(min_length=1)] | None = Field(
        None, description="For sequence: words that come one after the other; any of the lists will do."
    )
    case_sensitive: bool = Field(False, description="Whether capital letters differ from small ones.")


class StructureFeature(Model):
    """What number is made of it."""

    type: Literal["exists", "count", "density", "sequence"] = Field(
        description="exists: 1 or 0. count: how often. density: count over the text's units. sequence: 1 or 0."
    )
    source: StructureSource = Field(description="What is looked for.")


class StructureRule(Model):
    """How the current user turn is written."""

    name: RuleName = Field(description="Unique in its family; conditions and projections refer to it.")
    description: str | None = Field(None, description="For people.")
    feature: StructureFeature = Field(description="The number.")
    predicate: Bounds | None = Field(None, description="When the number matches; for count and density.")


class ConversationSource(Model):
    """What is counted."""

    type: Literal[
        "message",
        "tool_definition",
        "assistant_tool_call",
        "assistant_tool_cycle",
        "active_tool_loop",
        "image_content",
    ] = Field(description="Messages, tools on offer, calls, results of calls, a loop under way, or images.")
    role: Literal["user", "assistant", "system", "developer", "tool", "non_user"] | None = Field(
        None, description="For message: only those of this role."
    )


class ConversationFeature(Model):
    """What number is made of it."""

    type: Literal["exists", "count"] = Field(description="exists: 1 or 0. count: how many.")
    source: ConversationSource = Field(description="What is counted.")


class ConversationRule(Model):
    """The shape of the conversation."""

    name: RuleName = Field(description="Unique in its family; conditions and projections refer to it.")
    description: str | None = Field(None, description="For people.")
    feature: ConversationFeature = Field(description="The number.")
    predicate: Bounds | None = Field(None, description="When a count matches.")


class MetadataTest(Model):
    """Exactly one comparison."""

    equals: str | None = Field(None, description="The value is this.")
    in_: Annotated[list[str], Field(min_length=1)] | None = Field(
        None, alias="in", description="The value is one of these."
    )
    exists: bool | None = Field(None, description="Whether the key is there.")


class MetadataRule(Model):
    """A value of the request's `metadata`, which the client writes: a hint, not a permission."""

    name: RuleName = Field(description="Unique in its family; conditions and projections refer to it.")
    description: str | None = Field(None, description="For people.")
    key: Annotated[str, Field(min_length=1, max_length=128)] = Field(description="The key.")
    predicate: MetadataTest = Field(description="What its value must be.")


class Subject(Model):
    """Somebody."""

    kind: Literal["User", "Group"] = Field(description="A user's id, or a group.")
    name: Text = Field(description="The id or the group, as the trusted peer writes it.")


class RoleBinding(Model):
    """Who asks, by the headers of a trusted peer (`listeners[].identity`)."""

    name: RuleName = Field(description="Unique in its family; conditions and projections refer to it.")
    description: str | None = Field(None, description="For people.")
    role: Name = Field(description="What the subjects are, for people.")
    subjects: Annotated[list[Subject], Field(min_length=1)] = Field(description="Whoever is one of these matches.")


class InputModalityRule(Model):
    """Whether the user's messages hold a kind of content."""

    name: RuleName = Field(description="Unique in its family; conditions and projections refer to it.")
    description: str | None = Field(None, description="For people.")
    modality: Literal["text", "image", "audio", "video"] = Field(description="The kind of content.")


class EventRule(Model):
    """Words of machine-made events in the current user turn. Any criterion that is found matches."""

    name: RuleName = Field(description="Unique in its family; conditions and projections refer to it.")
    description: str | None = Field(None, description="For people.")
    event_types: Words | None = Field(None, description="Names of events, such as payment_failed.")
    severities: Words | None = Field(None, description="Severities, such as critical.")
    action_codes: Words | None = Field(None, description="Codes, such as TXN_DECLINE.")
    temporal: bool = Field(False, description="Also words of urgency, such as asap or deadline.")
