"""Random configurations and random edits of them, made from the settings tree itself: a new key is edited too."""

from enum import Enum
from types import UnionType
from typing import Union, get_args, get_origin

from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from gateway.settings.keys import Key
from gateway.settings.tree import Settings
from tests.support.json_type import Json

URLS = [f"http://10.0.0.{number}:8000" for number in range(1, 7)]
ENGINES = ["a", "b", "c"]


@st.composite
def trees(draw: st.DrawFn) -> Settings:
    """A small configuration with a bit of everything."""
    engines = draw(st.lists(st.sampled_from(ENGINES), min_size=1, unique=True))
    names = draw(st.lists(st.sampled_from(["m", "n", "o"]), min_size=1, unique=True))
    made: dict[str, Json] = {
        "engines": {
            name: {
                "kind": draw(st.sampled_from(["vllm", "trtllm", "triton"])),
                "urls": draw(st.lists(st.sampled_from(URLS), min_size=1, max_size=3, unique=True)),
            }
            for name in engines
        },
        "models": {
            name: {
                "targets": [
                    {"engine": engine, "model": draw(st.sampled_from(["x", "y"])), "weight": draw(st.integers(1, 3))}
                    for engine in draw(st.lists(st.sampled_from(engines), min_size=1, max_size=2, unique=True))
                ],
                "aliases": draw(st.lists(st.sampled_from([f"{name}1", f"{name}2"]), unique=True)),
            }
            for name in names
        },
    }
    if draw(st.booleans()):
        made["keys"] = [{"name": "team", "hash": f"sha256:{'0' * 64}"}]
    return Settings.model_validate(made)


@st.composite
def edits(draw: st.DrawFn, settings: Settings) -> Settings:
    """The settings with one key anywhere in them changed."""
    edited: Settings = draw(_edited(settings))
    return edited


@st.composite
def _edited(draw: st.DrawFn, section: BaseModel) -> Json:
    name = draw(st.sampled_from(sorted(type(section).model_fields)))
    value = draw(_other(getattr(section, name), type(section).model_fields[name].annotation))
    return section.model_copy(update={name: value})


@st.composite
def _other(draw: st.DrawFn, value: object, annotation: object) -> object:
    if isinstance(value, BaseModel):
        return draw(_edited(value))
    if isinstance(value, dict):
        return draw(_other_entries(value))
    if isinstance(value, tuple):
        several = next((one for one in get_args(annotation) if get_origin(one) is tuple), annotation)
        return draw(_other_items(value, several))
    if value is None and (words := _words(annotation)):
        return draw(st.sampled_from(words))
    if value is None and get_args(annotation):
        return draw(_other(_example(annotation), annotation))
    words = [word for word in _words(annotation) if word != value]
    if words:
        return draw(st.sampled_from(words))
    if _words(annotation):
        return value
    return _moved(value)


def _moved(value: object) -> object:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case SecretStr():
            return SecretStr(value.get_secret_value() + "1")
        case _:
            return f"{value}1"


@st.composite
def _other_entries(draw: st.DrawFn, value: dict[str, object]) -> dict[str, object]:
    if not all(isinstance(one, BaseModel) for one in value.values()) or not value:
        return {} if value else {"new": "other"}
    name = draw(st.sampled_from(sorted(value)))
    match draw(st.sampled_from(["edit", "remove", "add"])):
        case "remove" if len(value) > 1:
            return {key: one for key, one in value.items() if key != name}
        case "add":
            added = value[name]
            assert isinstance(added, BaseModel)
            return {**value, "new": added.model_copy(update={"aliases": ()})}
        case _:
            return {**value, name: draw(_other(value[name], None))}


@st.composite
def _other_items(draw: st.DrawFn, value: tuple[object, ...], annotation: object) -> tuple[object, ...]:
    match draw(st.sampled_from(["edit", "remove", "add", "turn"])):
        case "remove" if value:
            return value[1:]
        case "turn" if len(value) > 1:
            return value[::-1]
        case "edit" if value and isinstance(value[0], BaseModel):
            return (draw(_edited(value[0])), *value[1:])
        case _:
            more = _example(get_args(annotation)[0])
            return (*value, more) if more not in value else tuple(one for one in value if one != more)


def _example(annotation: object) -> object:
    """Some value of a type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if annotation is Key:
            return Key(name="other", hash=f"sha256:{'1' * 64}")
        return annotation.model_validate(
            {name: "a" for name, field in annotation.model_fields.items() if field.is_required()}
        )
    if words := _words(annotation):
        return words[0]
    arguments = get_args(annotation)
    if get_origin(annotation) is tuple:
        return (_example(arguments[0]),)
    if get_origin(annotation) is dict:
        return {"new": _example(arguments[1])}
    if arguments:
        return _example(arguments[0])
    plain: dict[object, object] = {int: 3, float: 3.0, SecretStr: SecretStr("s"), bool: True}
    return plain.get(annotation, "other")


def _words(annotation: object) -> list[object]:
    """The words of a closed set, or of one among other forms."""
    if get_origin(annotation) in {Union, UnionType}:
        return [word for one in get_args(annotation) for word in _words(one)]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return list(annotation)
    words = get_args(annotation)
    return list(words) if words and all(isinstance(word, str) for word in words) and get_origin(annotation) else []
