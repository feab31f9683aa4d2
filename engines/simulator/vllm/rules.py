"""What vLLM accepts: member types as data, and the checks behind them in vLLM's order."""

from collections.abc import Iterator, Mapping
from typing import Any

from engines.simulator.models import SimulatedModel
from engines.simulator.prompt import called_functions
from engines.simulator.schema import Body, Field, Issue, Kind, Schema, check, is_finite
from engines.simulator.vllm.errors import BadRequest, about, invalid

_TEXT, _WHOLE, _NUMBER, _FLAG = Field(Kind.TEXT), Field(Kind.WHOLE), Field(Kind.NUMBER), Field(Kind.FLAG)

_SAMPLING: Mapping[str, Field] = {
    "model": _TEXT,
    "frequency_penalty": _NUMBER,
    "presence_penalty": _NUMBER,
    "repetition_penalty": _NUMBER,
    "temperature": _NUMBER,
    "top_p": _NUMBER,
    "top_k": _WHOLE,
    "min_p": _NUMBER,
    "n": _WHOLE,
    "seed": _WHOLE,
    "max_tokens": _WHOLE,
    "min_tokens": _WHOLE,
    "stream": _FLAG,
    "ignore_eos": _FLAG,
    "stop_token_ids": Field(Kind.LIST),
    "include_stop_str_in_output": _FLAG,
    "return_token_ids": _FLAG,
    "priority": _WHOLE,
    "truncate_prompt_tokens": _WHOLE,
    "user": _TEXT,
    "request_id": _TEXT,
    "response_format": Field(
        Kind.OBJECT,
        members=Schema({"type": Field(Kind.TEXT, choices=("text", "json_object", "json_schema", "structural_tag"))}),
    ),
    "stream_options": Field(
        Kind.OBJECT, members=Schema({"include_usage": _FLAG, "continuous_usage_stats": _FLAG}, closed=False)
    ),
}

_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

CHAT = Schema(
    {
        "messages": Field(Kind.LIST, required=True),
        **_SAMPLING,
        "max_completion_tokens": _WHOLE,
        "logprobs": _FLAG,
        "top_logprobs": _WHOLE,
        "parallel_tool_calls": _FLAG,
        "include_reasoning": _FLAG,
        "chat_template": _TEXT,
        "chat_template_kwargs": Field(Kind.OBJECT),
        "reasoning_effort": Field(Kind.TEXT, choices=_EFFORTS),
        "tools": Field(
            Kind.LIST,
            members=Schema(
                {
                    "type": Field(Kind.TEXT, choices=("function",)),
                    "function": Field(
                        Kind.OBJECT, required=True, members=Schema({"name": Field(Kind.TEXT, required=True)})
                    ),
                }
            ),
        ),
    }
)
COMPLETION = Schema(
    {**_SAMPLING, "prompt": Field(), "suffix": _TEXT, "echo": _FLAG, "logprobs": _WHOLE, "best_of": _WHOLE}
)


def checked_chat(body: Body) -> Body:
    """The chat request with converted values. Raises `BadRequest`."""
    _chat_members(body)
    converted, issues = check(CHAT, body)
    issues.extend(_stop(body))
    if not issues:
        issues.extend(_messages(converted["messages"]))
    if issues:
        raise invalid(issues)
    return converted


def checked_completion(body: Body) -> Body:
    """The completions request with converted values. Raises `BadRequest`."""
    _stream_options(body)
    if not body.get("prompt"):
        raise about("prompt", "Either prompt or prompt_embeds must be provided and non-empty.")
    converted, issues = check(COMPLETION, body)
    issues.extend(_stop(body))
    if issues:
        raise invalid(issues)
    if converted.get("suffix"):
        raise BadRequest("suffix is only supported for models with FIM completion rendering", "suffix")
    return converted


def _stream_options(body: Body) -> None:
    if body.get("stream_options") and not body.get("stream"):
        raise about("stream_options", "Stream options can only be defined when `stream=True`.")


def _chat_members(body: Body) -> None:
    """Checks that vLLM makes before it looks at types."""
    _stream_options(body)
    wanted = body.get("response_format")
    if isinstance(wanted, dict) and wanted.get("type") == "json_schema" and not wanted.get("json_schema"):
        message = "When response_format type is 'json_schema', the 'json_schema' field must be provided."
        raise about("response_format", message)
    if body.get("top_logprobs") is not None and not body.get("logprobs"):
        raise about("top_logprobs", "when using `top_logprobs`, `logprobs` must be set to true.")
    if "messages" in body and body["messages"] is None:
        raise BadRequest("'NoneType' object is not iterable")
    _tool_choice(body)


def _tool_choice(body: Body) -> None:
    tools, choice = body.get("tools"), body.get("tool_choice")
    if tools == []:
        message = "`tools` must not be an empty array. Either provide at least one tool or omit the field entirely."
        raise about("tools", message)
    if choice is None or choice == "none":
        return
    if not tools:
        raise about("tool_choice", "When using `tool_choice`, `tools` must be set.")
    if isinstance(choice, str):
        if choice not in ("auto", "required"):
            allowed = 'Only named tools, "none", "auto" or "required" are supported.'
            raise about("tool_choice", f"Invalid value for `tool_choice`: {choice}! {allowed}")
        return
    function = choice.get("function") if isinstance(choice, dict) else None
    if not isinstance(function, dict):
        usage = '`{"type": "function", "function": {"name": "my_function"}}`'
        message = f"Invalid value for `function`: `{function}` in `tool_choice`! Correct usage: {usage}"
        raise about("tool_choice.function", message)
    names = [tool.get("function", {}).get("name") for tool in tools if isinstance(tool, dict)]
    if function.get("name") not in names:
        raise about("tool_choice", "The tool specified in `tool_choice` does not match any of the specified `tools`")


def _stop(body: Body) -> Iterator[Issue]:
    stop = body.get("stop")
    if not isinstance(stop, str | list | None):
        yield Issue("string_type", ("body", "stop"), "Input should be a valid string", stop)
        yield Issue("list_type", ("body", "stop"), "Input should be a valid list", stop)
    if isinstance(stop, list) and len(stop) > 4:
        yield Issue("string_type", ("body", "stop"), "Input should be a valid string", stop)
        message = f"List should have at most 4 items after validation, not {len(stop)}"
        context = {"field_type": "List", "max_length": 4, "actual_length": len(stop)}
        yield Issue("too_long", ("body", "stop"), message, stop, context)


def _messages(messages: list[Any]) -> Iterator[Issue]:
    for index, message in enumerate(messages):
        where = ("body", "messages", index, "ChatCompletionDeveloperMessageParam")
        if not isinstance(message, dict) or "role" not in message:
            yield Issue("missing", (*where, "role"), "Field required", message)
            return
        empty_allowed = message["role"] == "assistant" or "content" not in message
        content = message.get("content")
        if not isinstance(content, str | list) and not (content is None and empty_allowed):
            yield Issue("string_type", (*where, "content"), "Input should be a valid string", content)
        for function in called_functions(message):
            if not isinstance(function.get("arguments", ""), str):
                where_call = ("body", 0, "ChatCompletionMessageFunctionToolCallParam", "function")
                yield Issue("string_type", where_call, "Input should be a valid string", function["arguments"])


_RANGES: tuple[tuple[str, float, float], ...] = (
    ("presence_penalty", -2, 2),
    ("frequency_penalty", -2, 2),
    ("min_p", 0, 1),
)


def check_sampling(body: Body, model: SimulatedModel) -> None:
    """The ranges that vLLM's sampling parameters allow. Raises `BadRequest`."""
    n = body.get("n")
    if n is not None and n < 1:
        raise BadRequest(f"n must be at least 1, got {n}.")
    if n is not None and n > 16384:
        hint = "To increase this limit, set the VLLM_MAX_N_SEQUENCES environment variable."
        raise BadRequest(f"n must be at most 16384, got {n}. {hint}")
    for name, low, high in _RANGES:
        value = body.get(name)
        if value is not None and not low <= value <= high:
            raise BadRequest(f"{name} must be in [{low}, {high}], got {value}.")
    if (penalty := body.get("repetition_penalty")) is not None and penalty <= 0:
        raise BadRequest(f"repetition_penalty must be greater than zero, got {penalty}.")
    _temperature(body)
    if "" in ((body["stop"],) if isinstance(body.get("stop"), str) else body.get("stop") or ()):
        raise BadRequest("stop cannot contain an empty string.")
    if n is not None and n > 1 and body.get("temperature") == 0:
        raise BadRequest(f"n must be 1 when using greedy sampling, got {n}.")
    _logits(body)
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    if limit is not None and limit > model.max_length:
        message = f"max_tokens={limit} cannot be greater than max_model_len={model.max_length}."
        raise about("max_tokens", f"{message} Please request fewer output tokens.", limit)


def _temperature(body: Body) -> None:
    temperature, top_p = body.get("temperature"), body.get("top_p")
    if temperature is not None:
        if not is_finite(temperature):
            raise about("temperature", f"temperature must be a finite number, got {temperature}.", temperature)
        if temperature < 0:
            raise about("temperature", f"temperature must be non-negative, got {temperature}.", temperature)
        if temperature > 2:
            raise about("temperature", f"temperature must be in [0, 2], got {temperature}.", temperature)
    if top_p is not None and not 0 < top_p <= 1:
        raise about("top_p", f"top_p must be in (0, 1], got {top_p}.", top_p)


def _logits(body: Body) -> None:
    bias = body.get("logit_bias")
    if isinstance(bias, dict):
        words = [key for key in bias if not key.lstrip("-").isdigit()]
        if words:
            message = f"logit_bias contains key(s) that cannot be converted to integer token IDs: {words}"
            raise about("logit_bias", message, words)
        out = [int(key) for key in bias if int(key) >= 32_000]
        if out:
            message = f"token_id(s) {out} in logit_bias contain out-of-vocab token ids. Vocabulary size: 32000"
            raise about("logit_bias", message, out)
    top = body.get("top_logprobs")
    if top is not None and top > 20:
        message = f"Requested sample logprobs of {top}, which is greater than max allowed: 20"
        raise about("logprobs", message, top)


def check_minimum(body: Body, name: str) -> None:
    """Chat needs at least one token. Raises `BadRequest`."""
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    if limit is not None and limit < 1:
        raise about(name, f"{name} must be at least 1, got {limit}.", str(limit))
