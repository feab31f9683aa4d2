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

SCHEMAS: Final[Mapping[str, Mapping[str, Any]]] = {
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

SHAPES: Final[Mapping[Operation, tuple[str, str, str]]] = {
    Operation.CHAT: ("ChatRequest", "ChatAnswer", "Continue a conversation."),
    Operation.COMPLETIONS: ("CompletionRequest", "CompletionAnswer", "Continue a text."),
    Operation.EMBEDDINGS: ("EmbeddingRequest", "EmbeddingAnswer", "Turn texts into vectors (vLLM engines)."),
}

ERRORS: Final[Mapping[int, str]] = {
    400: "The request must be changed.",
    404: "There is no such model.",
    413: "The body is larger than server.max_body.",
    502: "The engine failed.",
    503: "No engine can be reached, or all are busy; see retry-after.",
    504: "The engine took too long.",
}

ANSWER_HEADERS: Final[Mapping[str, str]] = {
    "x-request-id": "The client's id if it is clean, else one of the gateway's.",
    "openai-processing-ms": "Milliseconds until the head of the answer.",
    "x-turnout-engine": "Which engine answered.",
    "x-turnout-attempts": "How many attempts it took.",
    "x-turnout-dropped": "Parameters that were left out for this engine.",
    "x-turnout-translated": "Parameters that were written differently for this engine.",
}


def _reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def forwarded_path(operation: Operation) -> dict[str, Any]:
    """The description of one forwarded path."""
    request, answer, summary = SHAPES[operation]
    content: dict[str, Any] = {"application/json": {"schema": _reference(answer)}}
    if operation is not Operation.EMBEDDINGS:
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
    for status, text in ERRORS.items():
        responses[str(status)] = {
            "description": text,
            "content": {"application/json": {"schema": _reference("Error")}},
        }
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
    for path, operation in FORWARDED.items():
        found["paths"][path] = forwarded_path(operation)
    found.setdefault("components", {}).setdefault("schemas", {}).update(SCHEMAS)
    return found
