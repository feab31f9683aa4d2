"""vLLM's `/v1/rerank` and `/v1/score`, which models of embeddings have too."""

import math
import time
from collections.abc import Sequence
from typing import Any

from engines.simulator import tokens
from engines.simulator.schema import Body, Field, Kind, Schema, check
from engines.simulator.vectors import vector
from engines.simulator.vllm.errors import invalid
from engines.simulator.vllm.render import FAILURE, Find, usage
from engines.simulator.wire import Work, dumps

RERANK = Schema(
    {
        "model": Field(Kind.TEXT),
        "query": Field(required=True),
        "documents": Field(required=True),
        "top_n": Field(Kind.WHOLE),
    }
)
SCORE = Schema({"model": Field(Kind.TEXT), "text_1": Field(required=True), "text_2": Field(required=True)})


def rerank(body: Body, find: Find, request_id: str) -> Work:
    """The work for a rerank request. Raises `BadRequest`."""
    checked = _checked(RERANK, body)
    model, name = find(checked.get("model"))
    documents = _texts(checked["documents"])
    query = next(iter(_texts(checked["query"])), "")
    scores = [_score(query, document, model.dimensions) for document in documents]
    best = sorted(range(len(documents)), key=lambda index: -scores[index])[: checked.get("top_n") or None]
    size = _size([query] * len(documents) + documents)
    value = {
        "id": f"score-{request_id}",
        "model": name,
        "usage": {"prompt_tokens": size, "total_tokens": size},
        "results": [
            {
                "index": index,
                "document": {"text": documents[index], "multi_modal": None},
                "relevance_score": scores[index],
            }
            for index in best
        ],
    }
    return Work(model.name, size, 0, "stop", FAILURE, dumps(value), ((),))


def score(body: Body, find: Find, request_id: str) -> Work:
    """The work for a score request. Raises `BadRequest`."""
    checked = _checked(SCORE, body)
    model, name = find(checked.get("model"))
    first, second = _texts(checked["text_1"]), _texts(checked["text_2"])
    first = first * len(second) if len(first) == 1 else first
    size = _size(first + second)
    value = {
        "id": f"score-{request_id}",
        "object": "list",
        "created": int(time.time()),
        "model": name,
        "data": [
            {"index": index, "object": "score", "score": _score(one, other, model.dimensions)}
            for index, (one, other) in enumerate(zip(first, second, strict=False))
        ],
        "usage": usage(size, 0),
    }
    return Work(model.name, size, 0, "stop", FAILURE, dumps(value), ((),))


def _checked(schema: Schema, body: Body) -> Body:
    checked, issues = check(schema, body)
    if issues:
        raise invalid(issues)
    return checked


def _texts(value: Any) -> list[str]:  # noqa: ANN401 - any JSON value
    items = value if isinstance(value, list) else [value]
    return [str(item.get("text", "")) if isinstance(item, dict) else str(item) for item in items]


def _score(one: str, other: str, dimensions: int) -> float:
    """The cosine of two stand-in vectors: 1 for equal texts, near 0 for others."""
    pairs = zip(vector(one, dimensions), vector(other, dimensions), strict=True)
    return math.fsum(a * b for a, b in pairs)


def _size(texts: Sequence[str]) -> int:
    return sum(1 + tokens.count(text) for text in texts)
