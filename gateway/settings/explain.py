"""Turns what pydantic found into findings that a person can act on."""

from typing import Final

from pydantic_core import ErrorDetails

from engines.section import UnfitValueError
from gateway.settings.problems import Finding, Path, did_you_mean
from gateway.settings.schema import all_keys, example_of, section_at
from gateway.settings.unsupported import names_not_yet

NOT: Final = ', not "{}"'
_WRONG_TYPE: Final = {
    "tuple_type": "expected a list",
    "dict_type": "expected a mapping of keys and values",
    "model_type": "expected a mapping of keys and values",
    "model_attributes_type": "expected a mapping of keys and values",
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
}
_CHOICES: Final = frozenset({"enum", "literal_error"})


def explain(error: ErrorDetails, tree: object = None) -> Finding:
    """One finding for one of pydantic's errors about `tree`; the rejected value is not part of it."""
    path: Path = error["loc"]
    kind = error["type"]
    context = error.get("ctx", {})
    example = _as_example(path, tree)
    if kind == "extra_forbidden":
        return _unknown_key(path, tree)
    if kind == "missing":
        return Finding(path, "is required", example)
    if kind in _CHOICES:
        return _not_a_choice(path, str(context["expected"]), error["input"])
    if kind in _WRONG_TYPE:
        return Finding(path, _WRONG_TYPE[kind], example, value_as=NOT)
    reason = context.get("error")
    if isinstance(reason, UnfitValueError):
        message = str(reason)
        if "such as" in message or not message.startswith("expected"):
            example = None
        return Finding(path, message, reason.fix or example, value_as=NOT)
    return Finding(path, str(reason) if isinstance(reason, ValueError) else error["msg"], example)


def unknown_key(path: Path, tree: object = None) -> tuple[str, str | None]:
    """The message and the suggestion for a key that does not exist at `path`."""
    name = str(path[-1])
    section = section_at(path[:-1], tree)
    known = (*(section.model_fields if section else ()), *names_not_yet(path[:-1]))
    suggestion = did_you_mean(name, known)
    if suggestion is None and (elsewhere := [key for key in all_keys() if key[-1] == name]):
        suggestion = f"it belongs at {'.'.join(elsewhere[0]).replace('*', 'NAME')}"
    if suggestion is None and known:
        suggestion = f"known here: {', '.join(known)}"
    return "unknown key", suggestion


def _unknown_key(path: Path, tree: object) -> Finding:
    message, suggestion = unknown_key(path, tree)
    return Finding(path, message, suggestion, at_key=True)


def _not_a_choice(path: Path, expected: str, given: object) -> Finding:
    choices = expected.replace("'", "").replace(" or ", ", ").split(", ")
    close = did_you_mean(given, choices) if isinstance(given, str) else None
    return Finding(path, f"expected one of {', '.join(choices)}", close, value_as=NOT)


def _as_example(path: Path, tree: object) -> str | None:
    while path and isinstance(path[-1], int):
        path = path[:-1]
    example = example_of(path, tree)
    return f"for example {example}" if example else None
