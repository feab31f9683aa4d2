"""The content of a message that is a tool call: OpenAI says null, some engines say an empty string."""

from gateway.wire.shape.event import Event, said_in
from gateway.wire.shape.stage import Stage


class NoContent(Stage):
    """Null for an empty `content` beside tool calls, and where it is missing (vLLM `tool_named`, trtllm-serve and
    Triton `tools_*`)."""

    __slots__ = ()

    signs = ()  # streams say content piece by piece

    def concerns_whole(self, data: bytes) -> bool:
        """Messages with calls, or without the member."""
        return b'"tool_calls":[{' in data or b'"content":' not in data

    def whole(self, answer: Event) -> bool:
        """Changes `message.content` only."""
        changed = False
        for message in said_in(answer, "message"):
            if "content" not in message or (message["content"] == "" and message.get("tool_calls")):
                message["content"] = None
                changed = True
        return changed
