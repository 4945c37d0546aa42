"""What every part of the resource has in common: camelCase on the wire, nothing unknown, nothing guessed."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import InitErrorDetails, PydanticCustomError

from supervisor.api.rules import Rule, broken
from supervisor.api.words import ALLOWED

RULE_BROKEN = "rule_broken"


class Effect(StrEnum):
    """What an edit of a field does to a live run; the last sentence of the field's description."""

    REFUSED = "Edits are refused."
    AT_ONCE = "Edits take effect at once."
    NEXT_CHECKPOINT = "Edits take effect at the next checkpoint."
    NEXT_ATTEMPT = "Edits take effect at the next attempt."


class Section(BaseModel):
    """Immutable, strict (no coercion), without unknown fields. `rules` bind its fields to each other."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        allow_inf_nan=False,
    )
    rules: ClassVar[tuple[Rule, ...]] = ()

    @model_validator(mode="after")
    def _obey(self) -> Self:
        fields = type(self).model_fields
        values = {field.alias or name: getattr(self, name) for name, field in fields.items()}
        errors = [
            InitErrorDetails(
                type=PydanticCustomError(RULE_BROKEN, "{sentence}", {"sentence": sentence}),
                loc=(at,) if at else (),
                input=values.get(at),
            )
            for at, sentence in broken(self.rules, values)
        ]
        if errors:
            raise ValidationError.from_exception_data(type(self).__name__, errors)
        return self


def described(text: str, effect: Effect, default: Any = ..., **constraints: Any) -> Any:
    """A spec field whose description ends with the effect of an edit."""
    return Field(default, description=f"{text} {effect}", **constraints)


def _patterned(pattern: str, most: int, allowed: str) -> Any:
    schema: dict[str, Any] = {ALLOWED: allowed}
    return Annotated[
        str, StringConstraints(pattern=pattern, max_length=most, min_length=1), Field(json_schema_extra=schema)
    ]


# NUL ends an argument or a path for the kernel, so no text that reaches one may hold it.
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$", max_length=32768)]
Argument = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$", max_length=4096)]
Path = _patterned(r"^[^\x00]+$", 4096, "a path of 1 to 4096 characters")
ModuleName = _patterned(
    r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$", 253, "the name of a Python module, such as training.train"
)
# Names of objects that we derive add up to 11 characters, and a label's value ends at 63.
RunName = _patterned(
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    52,
    "1 to 52 of a-z, 0-9 and -, with a letter or digit at both ends",
)
Namespace = _patterned(
    r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", 63, "1 to 63 of a-z, 0-9 and -, with a letter or digit at both ends"
)
LabelKey = _patterned(
    r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
    317,
    "the key of a label, such as example.com/rack",
)
LabelValue = Annotated[
    str,
    StringConstraints(pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$", max_length=63),
    Field(json_schema_extra={ALLOWED: "the value of a label: at most 63 of A-Z, a-z, 0-9, -, _ and ."}),
]
VariableName = _patterned(
    r"^[A-Za-z_][A-Za-z0-9_]*$", 253, "the name of an environment variable: letters, digits and _"
)
Identifier = _patterned(r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$", 63, "1 to 63 letters, digits, -, _ and .")
