"""Answers of the OpenAI API as engines spell them, as bytes."""

import json

from tests.support.json_type import Json

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
EMBEDDINGS = "/v1/embeddings"
ID = "chatcmpl-0123456789abcdef0123456789abcdef"
DONE = b"data: [DONE]\n\n"
HELLO: dict[str, Json] = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
STREAM: dict[str, Json] = HELLO | {"stream": True}


def compact(document: Json) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def event(document: Json) -> bytes:
    return b"data: " + compact(document) + b"\n\n"


def completion(content: str = "Hi.", *, model: str = "org/m", answer_id: str = ID, **more: Json) -> dict[str, Json]:
    return {
        "id": answer_id,
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, "refusal": None, "tool_calls": []},
                "logprobs": None,
                "finish_reason": "stop",
                "stop_reason": None,
            }
        ],
        "usage": {"prompt_tokens": 3, "total_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": None},
        **more,
    }


def delta(
    text: str | None = None,
    *,
    role: str | None = None,
    finish: str | None = None,
    model: str = "org/m",
    answer_id: str = ID,
    index: int = 0,
    **more: Json,
) -> dict[str, Json]:
    content = ({"role": role} if role else {}) | ({} if text is None else {"content": text})
    return {
        "id": answer_id,
        "object": "chat.completion.chunk",
        "created": 1,
        "model": model,
        "choices": [{"index": index, "delta": content, "logprobs": None, "finish_reason": finish}],
        **more,
    }


def deltas(*texts: str, finish: str | None = "stop", model: str = "org/m", answer_id: str = ID) -> list[bytes]:
    """The events of a stream without its ``[DONE]``: the role, the texts, the finish reason."""
    events = [event(delta("", role="assistant", model=model, answer_id=answer_id))]
    events += [event(delta(text, model=model, answer_id=answer_id)) for text in texts]
    if finish is not None:
        events.append(event(delta(finish=finish, model=model, answer_id=answer_id)))
    return events


def vllm_error(message: str, code: int = 400, kind: str = "BadRequestError") -> dict[str, Json]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
