"""What Triton's frontend accepts: OpenAI's schema of 2024, closed at the top and open below."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engines.simulator.schema import Body, Field, Issue, Kind, Schema, check
from engines.simulator.triton.errors import BadRequest, Invalid

_TEXT, _WHOLE, _FLAG, _ANY = Field(Kind.TEXT), Field(Kind.WHOLE), Field(Kind.FLAG), Field()
_PENALTY = Field(Kind.NUMBER, low=-2, high=2)
_COMMON: Mapping[str, Field] = {
    "model": Field(Kind.TEXT, required=True),
    "frequency_penalty": _PENALTY,
    "logit_bias": Field(Kind.OBJECT),
    "max_tokens": Field(Kind.WHOLE, low=0),
    "n": Field(Kind.WHOLE, low=1, high=128),
    "presence_penalty": _PENALTY,
    "seed": _WHOLE,
    "stop": _ANY,
    "stream": _FLAG,
    "stream_options": Field(Kind.OBJECT, members=Schema({"include_usage": _FLAG})),
    "temperature": Field(Kind.NUMBER, low=0, high=2),
    "top_p": Field(Kind.NUMBER, low=0, high=1),
    "user": _TEXT,
    "min_tokens": Field(Kind.WHOLE, low=0),
    "ignore_eos": _FLAG,
}
_TOOLS = Field(
    Kind.LIST,
    members=Schema(
        {
            "type": Field(Kind.TEXT, required=True, choices=("function",), choice_error="enum"),
            "function": Field(
                Kind.OBJECT,
                required=True,
                members=Schema(
                    {
                        "name": Field(Kind.TEXT, required=True),
                        "description": _TEXT,
                        "parameters": Field(Kind.OBJECT),
                    }
                ),
            ),
        }
    ),
)
CHAT = Schema(
    {
        "messages": Field(Kind.LIST, required=True, at_least=1),
        **_COMMON,
        "max_completion_tokens": Field(Kind.WHOLE, low=0),
        "logprobs": _FLAG,
        "top_logprobs": Field(Kind.WHOLE, low=0, high=20),
        "response_format": Field(
            Kind.OBJECT,
            members=Schema({"type": Field(Kind.TEXT, choices=("text", "json_object"), choice_error="enum")}),
        ),
        "tools": _TOOLS,
        "tool_choice": _ANY,
        "functions": Field(Kind.LIST),
        "function_call": _ANY,
    },
    closed=True,
)
COMPLETION = Schema(
    {
        **_COMMON,
        "prompt": Field(required=True),
        "best_of": Field(Kind.WHOLE, low=0, high=20),
        "echo": _FLAG,
        "logprobs": Field(Kind.WHOLE, low=0, high=5),
        "suffix": _TEXT,
    },
    closed=True,
)
EMBEDDING = Schema(
    {
        "model": Field(Kind.TEXT, required=True),
        "input": Field(required=True),
        "encoding_format": Field(Kind.TEXT, choices=("float", "base64")),
        "dimensions": Field(Kind.WHOLE, low=1),
        "user": _TEXT,
    },
    closed=True,
)

_ROLES = ("System", "User", "Assistant", "Tool", "Function")


def checked_chat(body: Body) -> Body:
    """The chat request with converted values. Raises `Invalid`."""
    converted, issues = check(CHAT, body)
    messages = converted.get("messages")
    for index, message in enumerate(messages if isinstance(messages, list) else ()):
        issues += _message(message, index)
    issues += _tool_choice(body.get("tool_choice"))
    if issues:
        raise Invalid(issues)
    return converted


def checked_completion(body: Body) -> Body:
    """The completions request with converted values. Raises `Invalid`."""
    return _checked(COMPLETION, body)


def checked_embedding(body: Body) -> Body:
    """The embeddings request: one string or one list of token ids. Raises `Invalid`."""
    converted, issues = check(EMBEDDING, body)
    issues += _input(body.get("input")) if "input" in body else []
    if issues:
        raise Invalid(issues)
    return converted


def _checked(schema: Schema, body: Body) -> Body:
    converted, issues = check(schema, body)
    if issues:
        raise Invalid(issues)
    return converted


def _message(message: Any, index: int) -> list[Issue]:  # noqa: ANN401 - any JSON value
    """A message has to fit one of five models; the errors of all five are shown when it fits none."""
    where = ("body", "messages", index)
    if not isinstance(message, dict):
        text = "Input should be a valid dictionary or object to extract fields from"
        return [
            Issue("model_attributes_type", (*where, f"ChatCompletionRequest{role}Message"), text, message)
            for role in _ROLES
        ]
    found: list[Issue] = []
    for role in _ROLES:
        issues = _as_role(message, role, (*where, f"ChatCompletionRequest{role}Message"))
        if not issues:
            return []
        found += issues
    return found


_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "System": ("content",),
    "User": ("content",),
    "Assistant": (),
    "Tool": ("content", "tool_call_id"),
    "Function": ("name",),
}


def _as_role(message: Mapping[str, Any], role: str, where: tuple[str | int, ...]) -> list[Issue]:
    wanted = role.lower()
    content_kind = _ANY if role == "User" else _TEXT
    fields = {
        "content": replace(content_kind, required="content" in _REQUIRED[role]),
        "role": Field(Kind.TEXT, required=True, choices=(wanted,), choice_error="enum"),
        "tool_call_id": replace(_TEXT, required="tool_call_id" in _REQUIRED[role]),
        "name": replace(_TEXT, required="name" in _REQUIRED[role]),
    }
    issues = check(Schema(fields), message, where)[1]
    content = message.get("content")
    if role == "User" and not isinstance(content, str | list) and not issues:
        issues.append(Issue("string_type", (*where, "content"), "Input should be a valid string", content))
    return issues


def _tool_choice(choice: Any) -> list[Issue]:  # noqa: ANN401 - any JSON value
    if choice is None or choice in ("none", "auto", "required"):
        return []
    where = ("body", "tool_choice")
    named = (*where, "ChatCompletionNamedToolChoice")
    if isinstance(choice, dict) and isinstance(choice.get("function"), dict) and "name" in choice["function"]:
        return []
    expected = "'none', 'auto' or 'required'"
    literal = (*where, "enum[ChatCompletionToolChoiceOption1]")
    issue = Issue("enum", literal, f"Input should be {expected}", choice, {"expected": expected})
    if not isinstance(choice, dict):
        message = "Input should be a valid dictionary or object to extract fields from"
        return [issue, Issue("model_attributes_type", named, message, choice)]
    return [issue, Issue("missing", (*named, "function"), "Field required", choice)]


def _input(value: Any) -> list[Issue]:  # noqa: ANN401 - any JSON value
    where = ("body", "input")
    if value in ("", []):
        kind = "Value" if value == "" else "List"
        message = f"{kind} should have at least 1 item after validation, not 0"
        return [Issue("too_short", where, message, value, {"field_type": kind, "min_length": 1, "actual_length": 0})]
    if isinstance(value, str):
        return []
    text = Issue("string_type", (*where, "str"), "Input should be a valid string", value)
    if not isinstance(value, list):
        return [text, Issue("list_type", (*where, "list[int]"), "Input should be a valid list", value)]
    inner = check(Schema({str(index): Field(Kind.WHOLE) for index in range(len(value))}), _numbered(value))[1]
    if not inner:
        return []
    return [text, *(replace(issue, loc=(*where, "list[int]", int(issue.loc[-1]))) for issue in inner)]


def _numbered(values: list[Any]) -> dict[str, Any]:
    return {str(index): value for index, value in enumerate(values)}


def check_common(body: Body) -> None:
    """What the frontend refuses behind the schema. Raises `BadRequest`."""
    n = body.get("n")
    if n is not None and n > 1:
        raise BadRequest(f"Received n={n}, but only single choice (n=1) is currently supported")
    if body.get("logit_bias") is not None:
        raise BadRequest("logit bias is not currently supported")
    if body.get("stream_options") is not None and not body.get("stream"):
        raise BadRequest("`stream_options` can only be used when `stream` is True")
