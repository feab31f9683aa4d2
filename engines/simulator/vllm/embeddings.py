"""vLLM's `/v1/embeddings`."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engines.simulator import tokens
from engines.simulator.schema import Body, Field, Issue, Kind, Schema, check
from engines.simulator.vectors import packed, vector
from engines.simulator.vllm.context import check_length
from engines.simulator.vllm.errors import BadRequest, invalid
from engines.simulator.vllm.render import FAILURE, Find, usage
from engines.simulator.wire import Work, dumps

_FORMATS = ("float", "base64", "bytes", "bytes_only")
SCHEMA = Schema(
    {
        "model": Field(Kind.TEXT),
        "input": Field(required=True),
        "encoding_format": Field(Kind.TEXT, choices=_FORMATS),
        "dimensions": Field(Kind.WHOLE),
        "truncate_prompt_tokens": Field(Kind.WHOLE),
        "user": Field(Kind.TEXT),
    }
)


@dataclass(frozen=True, slots=True)
class _Input:
    value: str | tuple[int, ...]
    size: int


def plan(body: Body, find: Find, request_id: str) -> Work:
    """The work for an embeddings request. Raises `BadRequest`."""
    if "messages" in body and "input" not in body:
        message = "As of transformers v4.44, default chat template is no longer allowed, so you must provide a chat"
        raise BadRequest(f"{message} template if the tokenizer does not define one.")
    checked, issues = check(SCHEMA, body)
    inputs = _inputs(checked.get("input"), issues)
    if issues:
        raise invalid(issues)
    model, shown_name = find(checked.get("model"))
    if not inputs:
        raise BadRequest("You must pass at least one prompt")
    if (wanted := checked.get("dimensions")) is not None:
        message = f"Model '{model.name}' does not support Matryoshka embeddings;"
        raise BadRequest(f"{message} dimensions must be unset (received dimensions={wanted}).")
    cut = checked.get("truncate_prompt_tokens")
    most = model.max_length if cut == -1 else cut
    sizes = [each.size if most is None else min(each.size, most) for each in inputs]
    for size in sizes:
        check_length(size, 0, model.max_length + 1) if most is not None else _check(size, model.max_length)
    value = {
        "id": f"embd-{request_id}",
        "object": "list",
        "created": int(time.time()),
        "model": shown_name,
        "data": [
            {"index": index, "object": "embedding", "embedding": _shown(each, model.dimensions, checked)}
            for index, each in enumerate(inputs)
        ],
        "usage": usage(sum(sizes), 0),
    }
    return Work(model.name, sum(sizes), 0, "stop", FAILURE, dumps(value), ((),))


def _check(size: int, max_length: int) -> None:
    if size > max_length:
        check_length(size, 0, max_length)


def _shown(each: _Input, dimensions: int, body: Body) -> object:
    numbers = vector(each.value, dimensions)
    return packed(numbers) if body.get("encoding_format") == "base64" else numbers


def _inputs(value: Any, issues: list[Issue]) -> list[_Input]:  # noqa: ANN401 - any JSON value
    where = ("body", "input")
    if isinstance(value, str):
        return [_Input(value, 2 + tokens.count(value))]
    if not isinstance(value, list):
        if not issues:
            issues.append(Issue("list_type", where, "Input should be a valid list", value))
        return []
    if value and all(_is_token(each) for each in value):
        return [_Input(tuple(value), len(value))]
    out: list[_Input] = []
    for index, each in enumerate(value):
        if isinstance(each, str) and all(isinstance(other, str) for other in value):
            out.append(_Input(each, 2 + tokens.count(each)))
        elif _is_tokens(each):
            out.append(_Input(tuple(each), len(each)))
        else:
            issues.append(Issue("list_type", (*where, index), "Input should be a valid list", each))
    return out


def _is_token(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_tokens(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(_is_token(each) for each in value)
