"""vLLM's `/v1/completions`."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from engines.simulator import tokens
from engines.simulator.generation import Generated, Limits, generate
from engines.simulator.markup import Markup
from engines.simulator.models import SimulatedModel
from engines.simulator.sampling import completion_logprobs, stops
from engines.simulator.schema import Body
from engines.simulator.script import Turn
from engines.simulator.vllm.context import check_length
from engines.simulator.vllm.errors import BadRequest
from engines.simulator.vllm.render import FAILURE, FINGERPRINT, Find, usage
from engines.simulator.vllm.rules import check_sampling, checked_completion
from engines.simulator.wire import DONE, Frames, Work, dumps, event

_DEFAULT_TOKENS = 16


@dataclass(frozen=True, slots=True)
class _Prompt:
    text: str
    size: int


def plan(body: Body, find: Find, request_id: str) -> Work:
    """The work for a completions request. Raises `BadRequest`."""
    checked = checked_completion(body)
    model, shown_name = find(checked.get("model"))
    prompts = _prompts(checked["prompt"])
    for prompt in prompts:
        check_length(prompt.size, len(prompt.text), model.max_length)
    check_sampling(checked, model)
    n = int(checked.get("n") or 1)
    generated = [_generated(checked, model, prompt) for prompt in prompts for _ in range(n)]
    fixed = {
        "id": f"cmpl-{request_id}",
        "object": "text_completion",
        "created": int(time.time()),
        "model": shown_name,
    }
    size = sum(prompt.size for prompt in prompts)
    if checked.get("stream"):
        return _stream(fixed, checked, model, generated, size)
    return _whole(fixed, checked, model, generated, size)


def _prompts(prompt: object) -> list[_Prompt]:
    if isinstance(prompt, str):
        return [_Prompt(prompt, tokens.count(prompt))]
    if isinstance(prompt, list) and all(isinstance(each, int) for each in prompt):
        for each in prompt:
            if each >= tokens.VOCABULARY:
                raise BadRequest(f"Token id {each} is out of vocabulary")
        return [_Prompt("", len(prompt))]
    if isinstance(prompt, list):
        return [found for each in prompt for found in _prompts(each)]
    raise BadRequest("Either prompt or prompt_embeds must be provided and non-empty.", "prompt")


def _generated(body: Body, model: SimulatedModel, prompt: _Prompt) -> Generated:
    wanted = body.get("max_tokens")
    room = model.max_length - prompt.size
    # An echo without new tokens still reports one (recording `comp_max_tokens_zero_echo`).
    limit = min(_DEFAULT_TOKENS if wanted is None else wanted, room)
    answer = model.script(Turn(prompt.text))
    limits = Limits(
        tokens=limit,
        stops=stops(body.get("stop")),
        keep_stop=bool(body.get("include_stop_str_in_output")),
        ignore_end=bool(body.get("ignore_eos")),
        hold_back=True,
    )
    made = generate(answer, model.markup or Markup.HERMES, limits)
    if not body.get("echo"):
        return made
    echoed = (prompt.text, *made.pieces)
    return Generated(echoed, max(1, made.tokens), made.finish, made.stop_reason)


def _whole(fixed: Body, body: Body, model: SimulatedModel, made: Sequence[Generated], size: int) -> Work:
    logprobs = body.get("logprobs")
    total = sum(each.tokens for each in made)
    choices = [
        {
            "index": index,
            "text": each.text,
            "logprobs": None if logprobs is None else completion_logprobs(each.pieces, logprobs),
            "finish_reason": each.finish,
            "stop_reason": each.stop_reason,
            "token_ids": None,
            "prompt_logprobs": None,
            "prompt_token_ids": None,
            "routed_experts": None,
        }
        for index, each in enumerate(made)
    ]
    value = fixed | {
        "choices": choices,
        "service_tier": None,
        "system_fingerprint": FINGERPRINT,
        "usage": usage(size, total),
        "kv_transfer_params": None,
        "ec_transfer_params": None,
        "metrics": None,
    }
    steps: Sequence[Frames] = ((),) * max(each.tokens for each in made)
    return Work(model.name, size, total, made[0].finish, FAILURE, dumps(value), steps)


def _stream(fixed: Body, body: Body, model: SimulatedModel, made: Sequence[Generated], size: int) -> Work:
    include = bool((body.get("stream_options") or {}).get("include_usage"))
    logprobs = body.get("logprobs")
    total = sum(each.tokens for each in made)

    def one(index: int, each: Generated, step: int) -> bytes:
        last = step == len(each.pieces) - 1
        piece = each.pieces[step]
        choice = {
            "index": index,
            "text": piece,
            "logprobs": None if logprobs is None else completion_logprobs((piece,), logprobs),
            "finish_reason": each.finish if last else None,
            "stop_reason": each.stop_reason if last else None,
            "prompt_token_ids": None,
            "token_ids": None,
        }
        value = fixed | {"choices": [choice]}
        return event(value | {"system_fingerprint": FINGERPRINT} if last and not include else value)

    rows = [[one(index, each, step) for step in range(len(each.pieces))] for index, each in enumerate(made)]
    steps = [tuple(frame for frame in column if frame is not None) for column in zip_longest(*rows)]
    closing: Frames = (DONE,)
    if include:
        numbers = {"prompt_tokens": size, "total_tokens": size + total, "completion_tokens": total}
        closing = (event(fixed | {"choices": [], "usage": numbers, "system_fingerprint": FINGERPRINT}), DONE)
    return Work(model.name, size, total, made[0].finish, FAILURE, None, steps, (), closing)
