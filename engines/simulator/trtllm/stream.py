"""trtllm-serve's streamed chat answers: a chunk for every token, also where there is nothing in it."""

import time
from collections.abc import Sequence

from engines.simulator.parsers.deltas import CallStart, Delta, Text
from engines.simulator.parsers.qwen3 import Qwen3Stream
from engines.simulator.prompt import tool_schemas
from engines.simulator.sampling import chat_logprobs, quoted
from engines.simulator.trtllm.accepted import Chat, call_id, finish_of, until_closed, usage, work
from engines.simulator.wire import DONE, Frames, Work, dumps

_ROLE = b'{"role":"assistant"}'
_NOTHING = b'{"content":"","reasoning_content":""}'


def stream(chat: Chat, number: int) -> Work:
    """The work of a stream; `number` is its id."""
    fixed = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": chat.body["model"],
        "choices": [],
    }
    writer = _Writer(chat, b"data: " + dumps(fixed)[:-2])
    deltas, called = _deltas(chat)
    finish = finish_of(chat, called=called)
    steps: list[Frames] = []
    for step, delta in enumerate(deltas):
        last = finish if step == len(deltas) - 1 else None
        frames = tuple(writer.event(index, delta, step + 1, step, last) for index in range(chat.n))
        steps.append(writer.roles() + frames if step == 0 else frames)
    closing: Frames = (writer.usage_event(), DONE) if writer.counted else (DONE,)
    return work(chat, finish, steps=steps, closing=closing)


class _Writer:
    """Renders events."""

    def __init__(self, chat: Chat, start: bytes) -> None:
        self.chat, self.start = chat, start
        options = chat.body.get("stream_options")
        # An empty object turns the usage on (`chat_stream_options_empty`).
        self.counted = options is not None and options.get("include_usage", True) is not False
        self.continuous = self.counted and bool(options and options.get("continuous_usage_stats"))

    def roles(self) -> Frames:
        """The first events. They have a blank before the line break, which the later ones have not."""
        tail = b"}]" + self._running(0) + b"} \n\n"
        return tuple(self.start + b'{"index":%d,"delta":' % index + _ROLE + tail for index in range(self.chat.n))

    def event(self, index: int, delta: bytes, so_far: int, step: int, finish: str | None) -> bytes:
        """One event; members that would be null are left out."""
        choice = self.start + b'{"index":%d,"delta":' % index + delta
        if self.chat.body.get("logprobs"):
            piece = self.chat.generated.pieces[step]
            choice += b',"logprobs":' + dumps(chat_logprobs((piece,), self.chat.body.get("top_logprobs")))
        if finish is not None:
            choice += b',"finish_reason":' + dumps(finish)
        return choice + b"}]" + self._running(so_far) + b"}\n\n"

    def _running(self, so_far: int) -> bytes:
        return b',"usage":' + dumps(usage(self.chat.size, so_far)) if self.continuous else b""

    def usage_event(self) -> bytes:
        """The event behind the last choice."""
        total = self.chat.generated.tokens * self.chat.n
        return self.start + b'],"usage":' + dumps(usage(self.chat.size, total)) + b"}\n\n"


def _deltas(chat: Chat) -> tuple[list[bytes], bool]:
    """One delta for every token, also where there is nothing in it; and whether there was a call."""
    if chat.named is not None:
        return _forced(chat, chat.named), True
    parser = Qwen3Stream(set(tool_schemas(chat.body["tools"]))) if chat.parses else None
    dropped = chat.body.get("tool_choice") == "none"
    out: list[bytes] = []
    for thought, piece in chat.split:
        found: list[Delta] = [Text(piece)] if piece else []
        if parser is not None and piece:
            found = parser.feed(piece)
        out.append(_delta(thought, found, dropped=dropped))
    return out or [_NOTHING], parser is not None and parser.calls > 0 and not dropped


def _delta(thought: str, found: Sequence[Delta], *, dropped: bool) -> bytes:
    text = "".join(delta.text for delta in found if isinstance(delta, Text))
    head = b'{"content":' + quoted(text) + b',"reasoning_content":' + quoted(thought)
    calls = [] if dropped else [_call(delta) for delta in found if not isinstance(delta, Text)]
    return head + (b',"tool_calls":[' + b",".join(calls) + b"]" if calls else b"") + b"}"


def _call(delta: Delta) -> bytes:
    if isinstance(delta, CallStart):
        function = {"name": delta.name, "arguments": ""}
        return dumps({"id": call_id(), "type": "function", "index": delta.index, "function": function})
    if isinstance(delta, Text):
        return b""
    return dumps({"type": "function", "index": delta.index, "function": {"arguments": delta.text}})


def _forced(chat: Chat, name: str) -> list[bytes]:
    """Arguments as they come, to the brace that closes them; nothing but empty deltas behind it."""
    left = len(until_closed(chat.generated.text))
    out: list[bytes] = []
    for piece in chat.generated.pieces:
        text, left = piece[:left], max(0, left - len(piece))
        if not text:
            out.append(b"{}")
            continue
        function: dict[str, object] = {"arguments": text}
        call: dict[str, object] = {"type": "function", "index": 0, "function": function}
        if not out:
            call = {"id": call_id(), "type": "function", "index": 0, "function": {"name": name} | function}
        out.append(b'{"tool_calls":[' + dumps(call) + b"]}")
    return out
