"""Streams of named events as vLLM spells them, as bytes (recordings `responses_stream`, `messages_stream`)."""

import json

from tests.support.json_type import Json
from tests.support.openai_bytes import compact

RESPONSES = "/v1/responses"
MESSAGES = "/v1/messages"
COUNT_TOKENS = "/v1/messages/count_tokens"
ASK: dict[str, Json] = {"model": "m", "input": "hello"}
TELL: dict[str, Json] = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "hello"}]}
RESPONSE_ID = "resp_838e87897bff4fb7"
MESSAGE_ID = "chatcmpl-b3fb797da7256906"


def named(kind: str, **members: Json) -> bytes:
    return f"event: {kind}\ndata: ".encode() + compact({"type": kind, **members}) + b"\n\n"


def read_named(body: bytes) -> list[tuple[str, Json]]:
    """The events of a stream, each of which must be one ``event`` line and one ``data`` line."""
    assert body == b"" or body.endswith(b"\n\n"), body[-200:]
    found = []
    for event in body.split(b"\n\n")[:-1]:
        first, second = event.split(b"\n")
        assert first.startswith(b"event: "), event
        assert second.startswith(b"data: "), event
        document = json.loads(second.removeprefix(b"data: "))
        assert document["type"] == first.removeprefix(b"event: ").decode()
        found.append((document["type"], document))
    return found


def response(status: str = "completed", text: str = "Hi.", *, model: str = "org/m", **more: Json) -> dict[str, Json]:
    content: Json = {"annotations": [], "text": text, "type": "output_text", "logprobs": None}
    message: Json = {"id": "msg_1", "content": [content], "role": "assistant", "status": "completed", "type": "message"}
    return {
        "id": RESPONSE_ID,
        "created_at": 1796089873,
        "error": None,
        "metadata": None,
        "model": model,
        "object": "response",
        "output": [] if status == "in_progress" else [message],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [{"type": "function", "name": "model", "parameters": {"model": "org/m"}, "strict": None}],
        "status": status,
        "usage": None
        if status == "in_progress"
        else {
            "input_tokens": 13,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 12,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 25,
        },
        **more,
    }


def response_events(*texts: str, end: str | None = "completed", model: str = "org/m") -> list[bytes]:
    """The events of a streamed response; ``end`` is its status, None for one that never ends."""
    begun = response("in_progress", model=model)
    where: dict[str, Json] = {"item_id": "msg_1", "output_index": 0}
    item: Json = {"id": "msg_1", "content": [], "role": "assistant", "status": "in_progress", "type": "message"}
    documents: list[tuple[str, dict[str, Json]]] = [
        ("response.created", {"response": begun}),
        ("response.in_progress", {"response": begun}),
        ("response.output_item.added", {"item": item, "output_index": 0}),
        *(("response.output_text.delta", {"content_index": 0, "delta": t, "logprobs": [], **where}) for t in texts),
    ]
    if end is not None:
        documents.append((f"response.{end}", {"response": response(end, "".join(texts), model=model)}))
    return [named(kind, sequence_number=number, **members) for number, (kind, members) in enumerate(documents)]


def message(text: str = "Hi.", *, model: str = "org/m", **more: Json) -> dict[str, Json]:
    return {
        "id": MESSAGE_ID,
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": text}],
        "model": model,
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 13, "output_tokens": 12},
        **more,
    }


def message_events(*texts: str, end: bool = True, model: str = "org/m") -> list[bytes]:
    """The events of a streamed message."""
    start = message(model=model) | {
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": 13, "output_tokens": 0},
    }
    events = [named("message_start", message=start)]
    if texts:
        events.append(named("content_block_start", content_block={"type": "text", "text": ""}, index=0))
    events += [named("content_block_delta", delta={"type": "text_delta", "text": text}, index=0) for text in texts]
    if end:
        delta: Json = {"stop_reason": "end_turn", "stop_sequence": None}
        events.append(named("content_block_stop", index=0))
        events.append(named("message_delta", delta=delta, usage={"input_tokens": 13, "output_tokens": 12}))
        events.append(named("message_stop"))
    return events
