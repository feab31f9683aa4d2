"""The OpenAPI document: FastAPI's own for the control plane, and the forwarded paths beside it.

The forwarded bodies are sketched, not fenced in: their full form is OpenAI's and the engines', and members that the
gateway does not know pass through it.
"""

from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from engines.profile import Operation
from gateway.proxy.paths import FORWARDED
from gateway.wire.anthropic import ANTHROPIC
from gateway.wire.openai import STREAMED

DESCRIPTION: Final = "One OpenAI endpoint in front of vLLM, TensorRT-LLM and Triton."

_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer"}
_STREAM: Final = {"type": "boolean", "default": False, "description": "Answer as server-sent events."}
_MODEL: Final = {"type": "string", "description": "A name or alias from GET /v1/models."}


def _object(required: list[str], **properties: object) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": True}


def _list_of(items: object) -> dict[str, Any]:
    return {"type": "array", "items": items}


_USAGE: Final = _object([], prompt_tokens=_COUNT, completion_tokens=_COUNT, total_tokens=_COUNT)
_SAMPLING: Final = {
    "max_tokens": {"type": "integer", "minimum": 1},
    "temperature": {"type": "number", "minimum": 0},
    "top_p": {"type": "number"},
    "n": {"type": "integer", "minimum": 1},
    "stop": {"oneOf": [_TEXT, _list_of(_TEXT)]},
    "seed": _COUNT,
    "stream": _STREAM,
    "stream_options": _object([], include_usage={"type": "boolean"}),
}
_MESSAGE: Final = _object(["role"], role=_TEXT, content={"oneOf": [_TEXT, _list_of({"type": "object"})]})
_HEAD: Final = {"id": _TEXT, "object": _TEXT, "created": _COUNT, "model": _TEXT}

ERROR: Final = _object(
    ["error"],
    error=_object(
        ["message", "type", "param", "code"],
        message=_TEXT,
        type={
            "type": "string",
            "enum": [
                "invalid_request_error",
                "authentication_error",
                "permission_error",
                "not_found_error",
                "rate_limit_error",
                "server_error",
            ],
        },
        param={"type": ["string", "null"]},
        code={"type": ["string", "null"]},
    ),
)

SCHEMAS: Final[dict[str, Mapping[str, Any]]] = {
    "Error": ERROR,
    "ChatRequest": _object(
        ["model", "messages"],
        model=_MODEL,
        messages=_list_of(_MESSAGE),
        max_completion_tokens={"type": "integer", "minimum": 1},
        tools=_list_of({"type": "object"}),
        tool_choice={"oneOf": [_TEXT, {"type": "object"}]},
        response_format={"type": "object"},
        **_SAMPLING,
    ),
    "ChatAnswer": _object(
        ["id", "model", "choices"],
        **_HEAD,
        choices=_list_of(_object(["index", "message"], index=_COUNT, message=_MESSAGE, finish_reason=_TEXT)),
        usage=_USAGE,
    ),
    "CompletionRequest": _object(
        ["model", "prompt"], model=_MODEL, prompt={"oneOf": [_TEXT, _list_of({})]}, **_SAMPLING
    ),
    "CompletionAnswer": _object(
        ["id", "model", "choices"],
        **_HEAD,
        choices=_list_of(_object(["index", "text"], index=_COUNT, text=_TEXT, finish_reason=_TEXT)),
        usage=_USAGE,
    ),
    "EmbeddingRequest": _object(
        ["model", "input"],
        model=_MODEL,
        input={"oneOf": [_TEXT, _list_of(_TEXT)]},
        encoding_format={"type": "string", "enum": ["float", "base64"], "default": "float"},
        dimensions=_COUNT,
    ),
    "EmbeddingAnswer": _object(
        ["data", "model"],
        object=_TEXT,
        model=_TEXT,
        data=_list_of(
            _object(["index", "embedding"], index=_COUNT, embedding={"oneOf": [_list_of({"type": "number"}), _TEXT]})
        ),
        usage=_USAGE,
    ),
}

_MANY: Final = {"oneOf": [_TEXT, _list_of({})]}
_TOKENS: Final = _object([], input_tokens=_COUNT, output_tokens=_COUNT)
SCHEMAS_OF_OTHER_PATHS: Final[dict[str, Mapping[str, Any]]] = {
    "AnthropicError": _object(
        ["type", "error"], type=_TEXT, error=_object(["type", "message"], type=_TEXT, message=_TEXT)
    ),
    "ResponseRequest": _object(
        ["model", "input"],
        model=_MODEL,
        input=_MANY,
        instructions=_TEXT,
        tools=_list_of({"type": "object"}),
        max_output_tokens=_COUNT,
        previous_response_id=_TEXT,
        stream=_STREAM,
    ),
    "ResponseAnswer": _object(
        ["id", "model", "output"],
        id=_TEXT,
        model=_TEXT,
        status=_TEXT,
        output=_list_of({"type": "object"}),
        usage=_TOKENS,
    ),
    "MessageRequest": _object(
        ["model", "messages", "max_tokens"],
        model=_MODEL,
        messages=_list_of(_MESSAGE),
        max_tokens=_COUNT,
        system=_MANY,
        tools=_list_of({"type": "object"}),
        stream=_STREAM,
    ),
    "MessageAnswer": _object(
        ["id", "model", "content"],
        id=_TEXT,
        model=_TEXT,
        content=_list_of({"type": "object"}),
        stop_reason=_TEXT,
        usage=_TOKENS,
    ),
    "CountTokensRequest": _object(
        ["model", "messages"],
        model=_MODEL,
        messages=_list_of(_MESSAGE),
        system=_MANY,
        tools=_list_of({"type": "object"}),
    ),
    "CountTokensAnswer": _object(["input_tokens"], input_tokens=_COUNT),
    "RerankRequest": _object(
        ["model", "query", "documents"], model=_MODEL, query=_TEXT, documents=_list_of({}), top_n=_COUNT
    ),
    "RerankAnswer": _object(
        ["model", "results"],
        id=_TEXT,
        model=_TEXT,
        results=_list_of(_object(["index", "relevance_score"], index=_COUNT, relevance_score={"type": "number"})),
        usage=_USAGE,
    ),
    "ScoreRequest": _object(["model", "text_1", "text_2"], model=_MODEL, text_1=_MANY, text_2=_MANY),
    "ScoreAnswer": _object(
        ["model", "data"],
        id=_TEXT,
        model=_TEXT,
        data=_list_of(_object(["index", "score"], index=_COUNT, score={"type": "number"})),
        usage=_USAGE,
    ),
    "TokenizeRequest": _object(["model"], model=_MODEL, prompt=_TEXT, messages=_list_of(_MESSAGE)),
    "TokenizeAnswer": _object(["count", "tokens"], count=_COUNT, max_model_len=_COUNT, tokens=_list_of(_COUNT)),
    "DetokenizeRequest": _object(["model", "tokens"], model=_MODEL, tokens=_list_of(_COUNT)),
    "DetokenizeAnswer": _object(["prompt"], prompt=_TEXT),
}

SHAPES: Final[Mapping[Operation, tuple[str, str, str]]] = {
    Operation.CHAT: ("ChatRequest", "ChatAnswer", "Continue a conversation."),
    Operation.COMPLETIONS: ("CompletionRequest", "CompletionAnswer", "Continue a text."),
    Operation.EMBEDDINGS: ("EmbeddingRequest", "EmbeddingAnswer", "Turn texts into vectors (vLLM engines)."),
    Operation.RESPONSES: (
        "ResponseRequest",
        "ResponseAnswer",
        "OpenAI's Responses API (vLLM engines, newer trtllm-serve).",
    ),
    Operation.MESSAGES: (
        "MessageRequest",
        "MessageAnswer",
        "Anthropic's Messages API (vLLM engines, newer trtllm-serve).",
    ),
    Operation.COUNT_TOKENS: (
        "CountTokensRequest",
        "CountTokensAnswer",
        "Count the tokens of a message (vLLM engines, newer trtllm-serve).",
    ),
    Operation.RERANK: ("RerankRequest", "RerankAnswer", "Sort documents by a query (models of task rerank)."),
    Operation.SCORE: ("ScoreRequest", "ScoreAnswer", "Compare texts (models of task rerank)."),
    Operation.TOKENIZE: ("TokenizeRequest", "TokenizeAnswer", "Turn a text into token ids (vLLM engines)."),
    Operation.DETOKENIZE: ("DetokenizeRequest", "DetokenizeAnswer", "Turn token ids into a text (vLLM engines)."),
}

ERRORS: Final[Mapping[int, str]] = {
    400: "The request must be changed.",
    401: "Keys are asked for, and there is no good one.",
    403: "The key is not for this model.",
    404: "There is no such model.",
    413: "The body is larger than server.max_body.",
    429: "A limit is reached, or a budget used up; see retry-after.",
    502: "The engine failed.",
    503: "No engine can be reached, or all are busy; see retry-after.",
    504: "The engine took too long.",
}

CONTROL_ERRORS: Final[Mapping[int, str]] = {
    400: "The request must be changed.",
    401: "The admin token is missing or wrong.",
    403: "Without an admin token, only this machine gets in.",
    404: "There is no such model, engine or endpoint.",
    503: "Not every serving process has answered.",
}

OF_ALL_PROCESSES: Final = (
    "/admin/engines",
    "/admin/errors",
    "/admin/log-level",
    "/admin/reload",
    "/admin/usage",
)
"""Where an answer needs all serving processes."""

ANSWER_HEADERS: Final[Mapping[str, str]] = {
    "x-request-id": "The client's id if it is clean, else one of the gateway's.",
    "openai-processing-ms": "Milliseconds until the head of the answer.",
    "x-ratelimit-remaining-requests": "Where requests are limited: how many may come now; also limit and reset.",
    "x-ratelimit-remaining-tokens": "Where tokens are limited: how many may be asked for now; also limit and reset.",
    "x-turnout-engine": "Which engine answered, or was asked last; absent where none was.",
    "x-turnout-attempts": "How many attempts it took; 0 where the gateway refused the request by itself.",
    "x-turnout-dropped": "Parameters that were left out for this engine.",
    "x-turnout-translated": "Parameters that were written differently for this engine.",
}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def forwarded_path(operation: Operation) -> dict[str, Any]:
    """The description of one forwarded path."""
    request, answer, summary = SHAPES[operation]
    content: dict[str, Any] = {"application/json": {"schema": _reference(answer)}}
    if operation in STREAMED:
        content["text/event-stream"] = {"schema": {"type": "string", "description": "With `stream: true`."}}
    responses: dict[str, Any] = {
        "200": {
            "description": "The answer.",
            "headers": {
                name: {"description": text, "schema": {"type": "string"}} for name, text in ANSWER_HEADERS.items()
            },
            "content": content,
        }
    }
    error = _reference("AnthropicError" if operation in ANTHROPIC else "Error")
    for status, text in ERRORS.items():
        responses[str(status)] = {"description": text, "content": {"application/json": {"schema": error}}}
    return {
        "post": {
            "tags": ["forwarded"],
            "summary": summary,
            "operationId": f"create_{operation.value}",
            "requestBody": {"required": True, "content": {"application/json": {"schema": _reference(request)}}},
            "responses": responses,
        }
    }


def document(app: FastAPI) -> dict[str, Any]:
    """The whole document."""
    found: dict[str, Any] = get_openapi(
        title=app.title, version=app.version, description=DESCRIPTION, routes=app.routes
    )
    for path, methods in found["paths"].items():
        for described in methods.values():
            _describe_errors(path, described)
    for path, operation in FORWARDED.items():
        found["paths"][path] = forwarded_path(operation)
    schemas = found.setdefault("components", {}).setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas.update(SCHEMAS | SCHEMAS_OF_OTHER_PATHS)
    return found


def _describe_errors(path: str, described: dict[str, Any]) -> None:
    """Puts the errors that a path of the control plane gives in place of FastAPI's usual 422, which none gives."""
    responses = described["responses"]
    responses.pop("422", None)
    given = {
        400: "requestBody" in described or path == "/admin/reload" or _has_query(described),
        401: path.startswith("/admin/"),
        403: path.startswith("/admin/"),
        404: "{" in path,
        503: path.startswith(OF_ALL_PROCESSES),
    }
    for status in (status for status, may_be in given.items() if may_be):
        content = {"application/json": {"schema": _reference("Error")}}
        responses[str(status)] = {"description": CONTROL_ERRORS[status], "content": content}


def _has_query(described: dict[str, Any]) -> bool:
    return any(parameter["in"] == "query" for parameter in described.get("parameters", ()))
