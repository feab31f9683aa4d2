"""What every part of a settings tree is: immutable, strict about its keys, and quiet about its values."""

from collections.abc import Iterable, Mapping

from pydantic import BaseModel, ConfigDict, model_validator


class UnfitValueError(ValueError):
    """A value of the wrong form; the message says what is expected, `fix` what to write instead. Neither quotes it."""

    def __init__(self, expected: str, fix: str | None = None) -> None:
        super().__init__(expected)
        self.fix = fix


class Section(BaseModel):
    """A part of the tree. A key written without a value counts as left out."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _without_blanks(cls, given: object) -> object:
        return without_blanks(given, cls.model_fields)


def without_blanks(given: object, known: Iterable[str]) -> object:
    """`given` without the known keys that have no value; None (a section without content) becomes an empty mapping."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        return given
    return {key: value for key, value in given.items() if value is not None or key not in known}
