"""What trtllm-serve accepts: closed schemas, so every unknown member is an error."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engines.simulator.schema import Body, Field, Issue, Kind, Schema, check
from engines.simulator.trtllm.errors import invalid, value_error

_TEXT, _WHOLE, _NUMBER, _FLAG, _ANY = (
    Field(Kind.TEXT),
    Field(Kind.WHOLE),
    Field(Kind.NUMBER),
    Field(Kind.FLAG),
    Field(),
)
_FORMATS = ("text", "json", "json_schema", "json_object", "regex", "ebnf", "structural_tag")
_STREAM_OPTIONS = Field(
    Kind.OBJECT, members=Schema({"include_usage": _FLAG, "continuous_usage_stats": _FLAG}, closed=True)
)

_COMMON: Mapping[str, Field] = {
    "model": Field(Kind.TEXT, required=True),
    "frequency_penalty": _NUMBER,
    "logit_bias": Field(Kind.OBJECT),
    "n": _WHOLE,
    "presence_penalty": _NUMBER,
    "seed": _WHOLE,
    "stop": _ANY,
    "stream": _FLAG,
    "stream_options": _STREAM_OPTIONS,
    "temperature": _NUMBER,
    "top_p": _NUMBER,
    "user": _TEXT,
    "best_of": _WHOLE,
    "use_beam_search": _FLAG,
    "top_k": _WHOLE,
    "top_p_min": _NUMBER,
    "min_p": _NUMBER,
    "repetition_penalty": _NUMBER,
    "length_penalty": _NUMBER,
    "early_stopping": _FLAG,
    "stop_token_ids": Field(Kind.LIST),
    "include_stop_str_in_output": _FLAG,
    "ignore_eos": _FLAG,
    "min_tokens": _WHOLE,
    "skip_special_tokens": _FLAG,
    "spaces_between_special_tokens": _FLAG,
    "truncate_prompt_tokens": _WHOLE,
    "add_special_tokens": _FLAG,
    "response_format": Field(
        Kind.OBJECT,
        members=Schema(
            {
                "type": Field(Kind.TEXT, required=True, choices=_FORMATS),
                "schema": _ANY,
                "json_schema": _ANY,
                "regex": _TEXT,
                "ebnf": _TEXT,
                "format": _ANY,
            },
            closed=True,
        ),
    ),
    "disaggregated_params": _ANY,
    "lora_request": _ANY,
}
_FUNCTION = Schema(
    {
        "name": Field(Kind.TEXT, required=True),
        "description": _TEXT,
        "parameters": Field(Kind.OBJECT),
        "strict": _FLAG,
    },
    closed=True,
)
_TOOLS = Field(
    Kind.LIST,
    members=Schema(
        {
            "type": Field(Kind.TEXT, choices=("function",)),
            "function": Field(Kind.OBJECT, required=True, members=_FUNCTION),
        },
        closed=True,
    ),
)
CHAT = Schema(
    {
        "messages": Field(Kind.LIST, required=True),
        **_COMMON,
        "max_tokens": _WHOLE,
        "max_completion_tokens": _WHOLE,
        "logprobs": _FLAG,
        "top_logprobs": _WHOLE,
        "tools": _TOOLS,
        "tool_choice": _ANY,
        "reasoning_effort": Field(Kind.TEXT, choices=("low", "medium", "high")),
        "thinking_token_budget": _WHOLE,
        "prompt_logprobs": _WHOLE,
        "echo": _FLAG,
        "add_generation_prompt": _FLAG,
        "documents": Field(Kind.LIST),
        "chat_template": _TEXT,
        "chat_template_kwargs": Field(Kind.OBJECT),
        "mm_processor_kwargs": Field(Kind.OBJECT),
        "cache_salt": _TEXT,
    },
    closed=True,
)
# `max_tokens` is the alias of `max_completion_tokens`: with both, the second is an unknown member.
_CHAT_ALIASED = replace(CHAT, fields={k: v for k, v in CHAT.fields.items() if k != "max_completion_tokens"})
COMPLETION = Schema(
    {
        **_COMMON,
        "prompt": Field(required=True),
        "max_tokens": _WHOLE,
        "logprobs": _WHOLE,
        "echo": _FLAG,
        "suffix": _TEXT,
        "detokenize": _FLAG,
    },
    closed=True,
)


def checked_chat(body: Body) -> Body:
    """The chat request with converted values. Raises `BadRequest`."""
    converted, issues = check(_CHAT_ALIASED if "max_tokens" in body else CHAT, body)
    if not issues:
        issues = _tool_choice(body.get("tool_choice")) or _cache_salt(body) or _whole_chat(body)
    if issues:
        raise invalid(issues)
    return converted


def checked_completion(body: Body) -> Body:
    """The completions request with converted values. Raises `BadRequest`."""
    converted, issues = check(COMPLETION, body)
    if not issues:
        issues = _stream_options(body)
        if body.get("suffix") is not None:
            issues = [value_error("suffix is not supported", body)]
    if issues:
        raise invalid(issues)
    return converted


def _tool_choice(choice: Any) -> list[Issue]:  # noqa: ANN401 - any JSON value
    if choice is None or choice in ("none", "auto"):
        return []
    where = ("body", "tool_choice")
    expected = "'none' or 'auto'"
    literal = Issue(
        "literal_error",
        (*where, "literal['none','auto']"),
        f"Input should be {expected}",
        choice,
        {"expected": expected},
    )
    named = (*where, "ChatCompletionNamedToolChoiceParam")
    if not isinstance(choice, dict):
        message = "Input should be a valid dictionary or object to extract fields from"
        return [literal, Issue("model_attributes_type", named, message, choice)]
    if not isinstance(choice.get("function"), dict):
        return [literal, Issue("missing", (*named, "function"), "Field required", choice)]
    return []


def _cache_salt(body: Body) -> list[Issue]:
    if body.get("cache_salt") != "":
        return []
    message = "Parameter 'cache_salt' must be a non-empty string if provided."
    context = {"error": ValueError(message)}
    return [Issue("value_error", ("body", "cache_salt"), f"Value error, {message}", "", context)]


def _stream_options(body: Body) -> list[Issue]:
    if body.get("stream_options") is not None and not body.get("stream"):
        return [value_error("stream_options can only be set if stream is true", body)]
    return []


def _whole_chat(body: Body) -> list[Issue]:
    if found := _stream_options(body):
        return found
    if body.get("top_logprobs") is not None and not body.get("logprobs"):
        return [value_error("logprobs must be true when using top_logprobs", body)]
    if body.get("tool_choice") not in (None, "none") and not body.get("tools"):
        return [value_error("When using `tool_choice`, `tools` must be set.", body)]
    return []
