"""The output items of vLLM's responses, whole and as they are streamed."""

import uuid
from collections.abc import Iterator

from engines.simulator.vllm.parts import Piece
from engines.simulator.wire import dumps


def new_id(prefix: str) -> str:
    """An id of the engine's."""
    return f"{prefix}_{uuid.uuid4().hex[:16]}"


def message(item_id: str, text: str | None, status: str = "completed") -> dict[str, object]:
    """A message; without text, one that has just begun."""
    content = [] if text is None else [text_part(text)]
    return {
        "id": item_id,
        "content": content,
        "role": "assistant",
        "status": status,
        "type": "message",
        "phase": None,
    }


def text_part(text: str) -> dict[str, object]:
    """A text in a message."""
    return {"annotations": [], "text": text, "type": "output_text", "logprobs": None}


def reasoning(item_id: str, text: str | None, status: str) -> dict[str, object]:
    """The model's reasoning."""
    content = None if text is None else [{"text": text, "type": "reasoning_text"}]
    item: dict[str, object] = {"id": item_id, "summary": [], "type": "reasoning", "content": content}
    return item | {"encrypted_content": None, "status": status}


def call(item_id: str, called_as: str, name: str | None, arguments: str, status: str) -> dict[str, object]:
    """A call of a tool."""
    item: dict[str, object] = {"arguments": arguments, "call_id": called_as, "name": name}
    item |= {"type": "function_call", "id": item_id}
    return item | {"async": None, "caller": None, "namespace": None, "status": status}


class Items:
    """The output items of a stream: one after the other, each opened by its first piece."""

    def __init__(self) -> None:
        self.done: list[object] = []
        self._sequence = 0
        self._kind: str | None = None
        self._id = self._name = self._call_id = self._text = ""

    def event(self, kind: str, **members: object) -> bytes:
        """The next event; members stand in the alphabet's order, but for those that came with later versions."""
        members |= {"sequence_number": self._sequence, "type": kind}
        late = members.pop("name", None)
        self._sequence += 1
        ordered = dict(sorted(members.items())) | ({} if late is None else {"name": late})
        return f"event: {kind}\ndata: ".encode() + dumps(ordered) + b"\n\n"

    def add(self, piece: Piece) -> Iterator[bytes]:
        """The events for the next piece."""
        if piece.kind != self._kind or piece.name is not None:
            yield from self.close()
            yield from self._open(piece)
        self._text += piece.text
        if not piece.text:
            return
        match piece.kind:
            case "call":
                yield self.event("response.function_call_arguments.delta", delta=piece.text, **self._where())
            case "thinking":
                yield self.event("response.reasoning_text.delta", content_index=0, delta=piece.text, **self._where())
            case _:
                told = {"content_index": 0, "delta": piece.text, "logprobs": [], **self._where()}
                yield self.event("response.output_text.delta", **told)

    def close(self) -> Iterator[bytes]:
        """The events that end the item under way."""
        match self._kind:
            case None:
                return
            case "call":
                told = {"arguments": self._text, "name": self._name, **self._where()}
                yield self.event("response.function_call_arguments.done", **told)
                item = call(self._id, self._call_id, self._name, self._text, "completed")
            case "thinking":
                part: dict[str, object] = {"text": self._text, "type": "reasoning_text"}
                yield self.event("response.reasoning_text.done", content_index=0, text=self._text, **self._where())
                yield self.event("response.content_part.done", content_index=0, part=part, **self._where())
                item = reasoning(self._id, self._text, "completed")
            case _:
                told = {"content_index": 0, "logprobs": [], "text": self._text, **self._where()}
                yield self.event("response.output_text.done", **told)
                part = text_part(self._text)
                yield self.event("response.content_part.done", content_index=0, part=part, **self._where())
                item = message(self._id, self._text)
        self._kind = None
        yield self.event("response.output_item.done", item=item, output_index=len(self.done))
        self.done.append(item)

    def _where(self) -> dict[str, object]:
        return {"item_id": self._id, "output_index": len(self.done)}

    def _open(self, piece: Piece) -> Iterator[bytes]:
        self._kind, self._text = piece.kind, ""
        part: dict[str, object] | None
        match piece.kind:
            case "call":
                self._id, self._call_id, self._name = new_id("fc"), piece.call_id, piece.name or ""
                item = call(self._id, self._call_id, self._name, "", "in_progress")
                part = None
            case "thinking":
                self._id = new_id("rs")
                item, part = reasoning(self._id, None, "in_progress"), {"text": "", "type": "reasoning_text"}
            case _:
                self._id = new_id("msg")
                item, part = message(self._id, None, "in_progress"), text_part("") | {"logprobs": []}
        yield self.event("response.output_item.added", item=item, output_index=len(self.done))
        if part is not None:
            yield self.event("response.content_part.added", content_index=0, part=part, **self._where())
