"""trtllm-serve's `/v1/completions`."""

import time
import uuid
from collections.abc import Sequence
from dataclasses import replace

from engines.simulator import tokens
from engines.simulator.generation import Generated, Limits, generate
from engines.simulator.markup import Markup
from engines.simulator.models import SimulatedModel
from engines.simulator.sampling import completion_logprobs, stops
from engines.simulator.schema import Body
from engines.simulator.script import Answer, Turn
from engines.simulator.trtllm.chat import check_length, limit_of
from engines.simulator.trtllm.errors import BadRequest, completion_failure, flat
from engines.simulator.trtllm.rules import checked_completion
from engines.simulator.wire import DONE, Frames, Work, dumps, event


def plan(body: Body, model: SimulatedModel, number: int) -> Work:
    """The work for a completions request."""
    checked = checked_completion(body)
    prompts = _prompts(checked["prompt"])
    if not prompts:
        raise BadRequest(flat("'prompt' must not be empty."))
    n = int(checked.get("n") or 1)
    size = sum(count for _, count in prompts)
    for _, count in prompts:
        check_length(count, model)
    answers = [model.script(Turn(text)) for text, _ in prompts]
    made = [
        _generated(checked, model, answer, text, count)
        for answer, (text, count) in zip(answers, prompts, strict=True)
        for _ in range(n)
    ]
    single = checked.get("stream") and len(made) == 1
    fixed = {
        "id": f"cmpl-{number if single else uuid.uuid4().hex}",
        "object": "text_completion",
        "created": int(time.time()),
        "model": checked["model"],
    }
    work = (_stream if checked.get("stream") else _whole)(fixed, checked, made, size, model)
    return replace(work, fails_at=answers[0].fails_after, failure=completion_failure(answers[0].error))


def _prompts(prompt: object) -> list[tuple[str, int]]:
    if isinstance(prompt, str):
        return [(prompt, tokens.count(prompt))]
    if not isinstance(prompt, list) or not prompt:
        return []
    if all(isinstance(each, int) for each in prompt):
        return [("", len(prompt))]
    return [found for each in prompt for found in _prompts(each)]


def _generated(body: Body, model: SimulatedModel, answer: Answer, text: str, size: int) -> Generated:
    limits = Limits(
        tokens=limit_of(body, size, model),
        stops=stops(body.get("stop")),
        keep_stop=bool(body.get("include_stop_str_in_output")),
        ignore_end=bool(body.get("ignore_eos")),
    )
    made = generate(answer, model.markup or Markup.HERMES, limits)
    return replace(made, pieces=(text, *made.pieces)) if body.get("echo") else made


def _usage(size: int, total: int) -> dict[str, object]:
    numbers: dict[str, object] = {"prompt_tokens": size, "total_tokens": size + total, "completion_tokens": total}
    return numbers | {"prompt_tokens_details": {"cached_tokens": 0}}


def _whole(fixed: Body, body: Body, made: Sequence[Generated], size: int, model: SimulatedModel) -> Work:
    logprobs = body.get("logprobs")
    total = sum(each.tokens for each in made)
    choices = [
        {
            "index": index,
            "text": each.text,
            "token_ids": None,
            "logprobs": None if logprobs is None else completion_logprobs(each.pieces, logprobs),
            "context_logits": None,
            "finish_reason": each.finish,
            "stop_reason": each.stop_reason,
            "disaggregated_params": None,
            "avg_decoded_tokens_per_iter": None,
        }
        for index, each in enumerate(made)
    ]
    value = fixed | {
        "choices": choices,
        "usage": _usage(size, total),
        "prompt_token_ids": None if len(made) == int(body.get("n") or 1) else [],
    }
    steps: Sequence[Frames] = ((),) * max(each.tokens for each in made)
    return Work(model.name, size, total, made[0].finish, completion_failure(""), dumps(value), steps)


def _stream(fixed: Body, body: Body, made: Sequence[Generated], size: int, model: SimulatedModel) -> Work:
    options = body.get("stream_options")
    include = options is not None and options.get("include_usage", True) is not False
    logprobs = body.get("logprobs")
    total = sum(each.tokens for each in made)
    steps: list[Frames] = []
    for index, each in enumerate(made):
        for step, piece in enumerate(each.pieces):
            last = step == len(each.pieces) - 1
            choice = {
                "index": index,
                "text": piece,
                "token_ids": None,
                "logprobs": None if logprobs is None else completion_logprobs((piece,), logprobs),
                "finish_reason": each.finish if last else None,
                "stop_reason": each.stop_reason if last else None,
                "avg_decoded_tokens_per_iter": None,
            }
            steps.append((event(fixed | {"choices": [choice], "usage": None}),))
    closing: Frames = (DONE,)
    if include:
        closing = (event(fixed | {"choices": [], "usage": _usage(size, total)}), DONE)
    return Work(model.name, size, total, made[0].finish, completion_failure(""), None, steps, (), closing)
