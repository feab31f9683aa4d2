"""The field lists are those of the installed OpenAI SDK: a new version of it that knows more fails here."""

import types
from collections.abc import Iterator
from typing import Annotated, Union, get_args, get_origin

import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import BaseModel

from gateway.wire.shape.fields import CHAT, CHAT_CHUNK, COMPLETION, REASONING, Fields

KEPT_WHOLE = {"logprobs", "annotations", "audio", "moderation", "custom"}
"""Members with an inside that is passed on as it is."""


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """The models in an annotation, however deep in lists and unions."""
    if get_origin(annotation) in (Annotated, Union, types.UnionType, list):
        for part in get_args(annotation):
            yield from models_in(part)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation


def may_be_null(annotation: object) -> bool:
    return get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation)


def compare(fields: Fields, models: list[type[BaseModel]], place: str) -> None:
    own = {name: model.model_fields[name] for model in models for name in model.model_fields}
    assert fields.names - REASONING == set(own), place
    always_there = {name for name, field in own.items() if field.is_required() and may_be_null(field.annotation)}
    assert always_there <= fields.nulls <= fields.names, place
    for name, field in own.items():
        inside = list(models_in(field.annotation))
        if name in fields.inside:
            compare(fields.inside[name], inside, f"{place}.{name}")
        else:
            assert not inside or name in KEPT_WHOLE, f"{place}.{name}"


@pytest.mark.parametrize(
    ("fields", "model"), [(CHAT, ChatCompletion), (CHAT_CHUNK, ChatCompletionChunk), (COMPLETION, Completion)]
)
def test_the_lists_are_those_of_the_openai_sdk(fields: Fields, model: type[BaseModel]) -> None:
    compare(fields, [model], model.__name__)
