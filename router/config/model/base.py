"""What every model of the dialect shares: strictness, its place in the document, and the marker types."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    PrivateAttr,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from router.config.document import Block, Items
from router.config.problems import Path

NOT_YET = "not_yet"
RENAMED = "renamed"
WRONG = "wrong"


class Model(BaseModel):
    """A mapping of the dialect. Unknown keys and values of another type are errors; nothing is converted."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)
    needed: ClassVar[tuple[str, ...]] = ()
    """Keys that are required although the model lets them be absent; the compiler reports them (`Context.need`)."""

    _block: Block = PrivateAttr()

    @model_validator(mode="wrap")
    @classmethod
    def _remember_the_block(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(value, Block):
            value.reader = cls
        model = handler(value)
        model._block = value if isinstance(value, Block) else Block(())
        return model

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        result = handler(schema)
        if cls.needed:
            resolved = handler.resolve_ref_schema(result)
            resolved["required"] = [*resolved.get("required", ()), *cls.needed]
        return result

    def at(self, *keys: str | int) -> Path:
        """The path of this mapping in the document, or of something under it."""
        return (*self._block.path, *keys)

    def at_item(self, key: str, index: int) -> Path:
        """The path of a scalar in a list, counted in the model; the document's own index may be larger."""
        items = self._block.get(key)
        return items.paths[index] if isinstance(items, Items) else self.at(key, index)

    def has(self, key: str) -> bool:
        """Whether the key is written in the document."""
        return key in self._block


def wrong(message: str, hint: str | None = None) -> PydanticCustomError:
    """An error with our own words."""
    return PydanticCustomError(WRONG, "{message}", {"message": message, "hint": hint})


def _refuse_not_yet(_: Any) -> Any:
    raise PydanticCustomError(NOT_YET, "not supported yet")


NotYet = Annotated[
    None,
    BeforeValidator(_refuse_not_yet),
    WithJsonSchema({"description": "Not supported yet.", "deprecated": True, "not": {}}),
]
"""A key that the dialect has and this version does not build. Writing it is an error, never silently without effect."""


class Renamed:
    """Annotation of a key of older dialects. `instead` says what to write."""

    def __init__(self, instead: str) -> None:
        self.instead = instead

    def __get_pydantic_core_schema__(self, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        def refuse(_: Any) -> Any:
            raise PydanticCustomError(RENAMED, "{instead}", {"instead": self.instead})

        return core_schema.no_info_plain_validator_function(refuse)

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"description": f"Older dialects only: {self.instead}.", "deprecated": True, "not": {}}


def soon(*values: str) -> BeforeValidator:
    """Values that the dialect has for a key and this version does not build."""

    def refuse(value: Any) -> Any:
        if isinstance(value, str) and value in values:
            raise PydanticCustomError(NOT_YET, "{message}", {"message": f'"{value}" is not supported yet'})
        return value

    return BeforeValidator(refuse)


def pattern(expression: str, allowed: str) -> Any:
    """Text of a form. `allowed` tells people what the form is."""
    compiled = re.compile(expression)

    def check(value: Any) -> Any:
        if isinstance(value, str) and "${" not in value and not compiled.fullmatch(value):
            raise wrong(f"must be {allowed}")
        return value

    return BeforeValidator(check)


def within(low: float, high: float) -> Any:
    """A number from `low` to `high`; a mistake names the whole range."""

    def check(value: Any) -> Any:
        if isinstance(value, int | float) and not isinstance(value, bool) and not low <= value <= high:
            raise wrong(f"must be from {low} to {high}")
        return value

    return BeforeValidator(check)


_NAME = r"[!-~](?:[ -~]{0,198}[!-~])?"
Name = Annotated[str, pattern(_NAME, "1 to 200 printable ASCII characters without spaces at the ends")]
"""A name that appears in headers and metrics."""

RuleName = Annotated[
    str, pattern(r"(?![^:,]*[:,])" + _NAME, "1 to 200 printable ASCII characters without `:`, `,` or outer spaces")
]
"""A signal rule's name: projections append `:label` to it, and headers list several."""

Key = Annotated[str, pattern(r"\S(?:[^\r\n]{0,198}\S)?", "1 to 200 characters without spaces at the ends")]
"""The key of an option or label."""

Text = Annotated[str, StringConstraints(min_length=1)]
Port = Annotated[int, Field(ge=1, le=65535)]
Address = Annotated[str, pattern(r"[0-9A-Za-z.:\-\[\]_]+", "an IP address or a host name")]
