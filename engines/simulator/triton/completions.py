"""Triton's `/v1/completions`."""

import time
import uuid
from dataclasses import replace

from engines.simulator import tokens
from engines.simulator.generation import generate
from engines.simulator.markup import Markup
from engines.simulator.models import SimulatedModel
from engines.simulator.sampling import completion_logprobs
from engines.simulator.schema import Body
from engines.simulator.script import Turn
from engines.simulator.triton.chat import failing, limits, usage
from engines.simulator.triton.errors import BadRequest, failure
from engines.simulator.triton.rules import check_common
from engines.simulator.wire import DONE, Frames, Work, dumps, event


def plan(body: Body, model: SimulatedModel, name: str) -> Work:
    """The work for a validated completions request. Raises `BadRequest`."""
    prompt = _check(body, model)
    size = tokens.count(prompt)
    answer = model.script(Turn(prompt))
    made = generate(answer, model.markup or Markup.LLAMA3, limits(body, model, size))
    if body.get("echo"):
        made = replace(made, pieces=(prompt, *made.pieces))
    fixed = {"id": f"cmpl-{uuid.uuid1()}"}
    rest = {
        "created": int(time.time()),
        "model": name,
        "system_fingerprint": None,
        "object": "text_completion",
    }
    logprobs = body.get("logprobs")

    def choice(text: str, pieces: tuple[str, ...], finish: str | None) -> Body:
        shown = None if logprobs is None else completion_logprobs(pieces, logprobs)
        return {"finish_reason": finish, "index": 0, "logprobs": shown, "text": text}

    numbers = usage(size, made.tokens)
    work = Work(model.name, size, made.tokens, "stop", failure(model.name, "", model.backend))
    if not body.get("stream"):
        value = fixed | {"choices": [choice(made.text, made.pieces, "stop")]} | rest | {"usage": numbers}
        steps: tuple[Frames, ...] = ((),) * len(made.pieces)
        return failing(replace(work, body=dumps(value), steps=steps), answer, model, size)
    last = len(made.pieces) - 1
    frames: list[Frames] = []
    for step, piece in enumerate(made.pieces):
        one = choice(piece, (piece,), "stop" if step == last else None)
        frames.append((event(fixed | {"choices": [one]} | rest | {"usage": None}),))
    closing: Frames = (DONE,)
    if (body.get("stream_options") or {}).get("include_usage"):
        closing = (event(fixed | {"choices": []} | rest | {"usage": numbers}), DONE)
    streamed = failing(replace(work, steps=frames, closing=closing), answer, model, size)
    # Recording `completions_echo_stream`: the connection is cut before the first event.
    return replace(streamed, fails_at=0) if body.get("echo") and model.backend == "vllm" else streamed


def _check(body: Body, model: SimulatedModel) -> str:
    prompt = body["prompt"]
    if body.get("suffix") is not None:
        raise BadRequest("suffix is not currently supported")
    if prompt in ("", []):
        raise BadRequest("prompt must be non-empty")
    if not isinstance(prompt, str):
        raise BadRequest("only single string input is supported")
    best_of = body.get("best_of")
    if best_of is not None and model.backend == "vllm":
        raise BadRequest("best_of is no longer supported in vLLM backend, removed from vLLM V1 engine")
    if best_of is not None and best_of > 1:
        message = f"Received best_of={best_of}, but only single choice (best_of=1) is currently supported"
        raise BadRequest(message)
    check_common(body)
    if body.get("logprobs") is not None and model.backend != "vllm":
        raise BadRequest("logprobs are currently available only for the vLLM backend")
    return prompt
