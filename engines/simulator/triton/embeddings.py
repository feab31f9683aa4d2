"""Triton's `/v1/embeddings`: one string or one list of token ids."""

from engines.simulator import tokens
from engines.simulator.models import SimulatedModel, Task
from engines.simulator.schema import Body
from engines.simulator.triton.errors import BadRequest, failure
from engines.simulator.vectors import packed, vector
from engines.simulator.wire import Work, dumps


def plan(body: Body, model: SimulatedModel, name: str) -> Work:
    """The work for a validated embeddings request. Raises `BadRequest`."""
    if model.backend != "vllm":
        raise BadRequest("TRT-LLM backend and Python backend do not support embedding requests")
    given = body["input"]
    size = tokens.count(given) if isinstance(given, str) else len(given)
    numbers = vector(given, body.get("dimensions") or model.dimensions)
    shown = packed(numbers) if body.get("encoding_format") == "base64" else numbers
    value = {
        "object": "list",
        "data": [{"object": "embedding", "embedding": shown, "index": 0}],
        "model": name,
        "usage": {"prompt_tokens": size, "total_tokens": size},
    }
    message, fails_at = "the scripted engine failed", None
    if model.task is not Task.EMBEDDING:
        message, fails_at = f"Model {model.name} does not support 'embed' request", 0
    broken = failure(model.name, message, model.backend)
    return Work(model.name, size, 0, "stop", broken, dumps(value), ((),), fails_at=fails_at)
