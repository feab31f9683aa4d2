"""trtllm-serve's `/v1/chat/completions`."""

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from engines.simulator.generation import Generated, Limits, generate
from engines.simulator.markup import Markup
from engines.simulator.models import SimulatedModel
from engines.simulator.parsers.deltas import CallStart, Delta, ParsedCall, Text, split_reasoning
from engines.simulator.parsers.qwen3 import Qwen3Stream, parse
from engines.simulator.partial import Incomplete, read
from engines.simulator.prompt import prompt_tokens, tool_schemas, turn
from engines.simulator.sampling import chat_logprobs, quoted, stops
from engines.simulator.schema import Body
from engines.simulator.script import Answer, Call
from engines.simulator.trtllm.errors import BadRequest, chat_failure, flat
from engines.simulator.trtllm.rules import checked_chat
from engines.simulator.wire import DONE, Frames, Work, dumps

ROLE = b'{"role":"assistant"}'
_NOTHING = b'{"content":"","reasoning_content":""}'


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat request after all checks, with its answer."""

    model: SimulatedModel
    body: Body
    size: int
    generated: Generated
    named: str | None

    @property
    def n(self) -> int:
        """Number of choices."""
        return int(self.body.get("n") or 1)

    @property
    def parses(self) -> bool:
        """Whether the tool parser runs; it does for `none` too, and throws the calls away."""
        return self.model.parser and bool(self.body.get("tools")) and self.named is None

    @property
    def split(self) -> list[tuple[str, str]]:
        """Tokens as (reasoning, content)."""
        if self.model.reasoning is None or self.named is not None:
            return [("", piece) for piece in self.generated.pieces]
        return split_reasoning(self.generated.pieces, inside=self.model.reasoning == "deepseek-r1")


def plan(body: Body, model: SimulatedModel, number: int) -> Work:
    """The work for a chat request. `number` is the engine's request number, which streams show as their id."""
    checked = checked_chat(body)
    named = _named(checked, model)
    messages: Sequence[Mapping[str, Any]] = [each for each in checked["messages"] if isinstance(each, dict)]
    size = prompt_tokens(messages, checked.get("tools"))
    check_length(size, model)
    answer = _answer(model, messages, checked, named)
    limits = Limits(
        tokens=limit_of(checked, size, model),
        stops=stops(checked.get("stop")),
        keep_stop=bool(checked.get("include_stop_str_in_output")),
        ignore_end=bool(checked.get("ignore_eos")),
    )
    generated = generate(answer, model.markup or Markup.HERMES, limits)
    chat = Chat(model, checked, size, generated, named)
    work = _stream(chat, number) if checked.get("stream") else _whole(chat)
    return replace(work, fails_at=answer.fails_after, failure=chat_failure(answer.error))


def _named(body: Body, model: SimulatedModel) -> str | None:
    choice = body.get("tool_choice")
    if not isinstance(choice, dict):
        return None
    name = str(choice["function"].get("name"))
    if not (model.guided and model.parser):
        message = "tool_choice with a named function requires the server to be started with a guided decoding backend"
        raise BadRequest(flat(f"{message} (set `guided_decoding_backend` to 'xgrammar' or 'llguidance')."))
    known = sorted(tool_schemas(body.get("tools")))
    if name not in known:
        message = f"tool_choice requested function '{name}' which is not present in `tools`."
        raise BadRequest(flat(f"{message} Available functions: {known}."))
    return name


def check_length(size: int, model: SimulatedModel) -> None:
    """Raises `BadRequest` with the code that newer versions give (`derived_endpoints`)."""
    if size >= model.max_length:
        message = f"The prompt has {size} tokens, which leaves no room within max_seq_len ({model.max_length})."
        raise BadRequest(flat(message, code="context_length_exceeded"))


def limit_of(body: Body, size: int, model: SimulatedModel) -> int:
    """How many tokens may be generated."""
    wanted = body.get("max_tokens", body.get("max_completion_tokens"))
    room = model.max_length - size
    return room if wanted is None else min(int(wanted), room)


def _answer(model: SimulatedModel, messages: Sequence[Mapping[str, Any]], body: Body, named: str | None) -> Answer:
    asked = turn(messages, body.get("tools"), named)
    answer = model.script(asked)
    if named is None or answer.pieces:
        return answer
    # Guided decoding makes the model write the bare arguments.
    forced = next((part for part in answer.segments if isinstance(part, Call)), Call(named, "{}"))
    return replace(answer, segments=(forced.arguments,))


def _usage(size: int, generated: int) -> dict[str, object]:
    return {
        "prompt_tokens": size,
        "total_tokens": size + generated,
        "completion_tokens": generated,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


def _whole(chat: Chat) -> Work:
    message, finish = _message(chat)
    body, generated = chat.body, chat.generated
    logprobs = chat_logprobs(generated.pieces, body.get("top_logprobs")) if body.get("logprobs") else None
    value = {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": body["model"],
        "choices": [
            {
                "index": index,
                "message": message,
                "logprobs": logprobs,
                "finish_reason": finish,
                "stop_reason": generated.stop_reason,
                "mm_embedding_handle": None,
                "disaggregated_params": None,
                "avg_decoded_tokens_per_iter": None,
            }
            for index in range(chat.n)
        ],
        "usage": _usage(chat.size, generated.tokens * chat.n),
        "prompt_token_ids": None,
        "prompt_token_ids_b64": None,
    }
    steps: Sequence[Frames] = ((),) * generated.tokens
    return _work(chat, finish, body=dumps(value), steps=steps)


def _work(
    chat: Chat, finish: str, *, body: bytes | None = None, steps: Sequence[Frames] = (), closing: Frames = ()
) -> Work:
    return Work(
        model=chat.model.name,
        prompt_tokens=chat.size,
        tokens=chat.generated.tokens * chat.n,
        finish=finish,
        failure=chat_failure(""),
        body=body,
        steps=steps,
        closing=closing,
    )


def _finish(chat: Chat, *, called: bool) -> str:
    return "tool_calls" if called and chat.generated.finish == "stop" else chat.generated.finish


def _message(chat: Chat) -> tuple[dict[str, object], str]:
    parts = chat.split
    content = "".join(text for _, text in parts)
    reasoning: str | None = "".join(thought for thought, _ in parts)
    calls: list[ParsedCall] = []
    if chat.named is not None:
        calls = [ParsedCall(chat.named, _until_closed(content))]
        content, reasoning = "", None
    elif chat.parses:
        content, calls = parse(content, set(tool_schemas(chat.body["tools"])))
        if chat.body.get("tool_choice") == "none":
            calls = []
    shown = [
        {"id": call_id(), "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]
    message: dict[str, object] = {
        "role": "assistant",
        "content": content,
        "reasoning_content": reasoning,
        "reasoning": None,
        "tool_calls": shown,
    }
    return message, _finish(chat, called=bool(calls))


def call_id() -> str:
    """The id of a tool call."""
    return f"chatcmpl-tool-{uuid.uuid4().hex}"


def _until_closed(text: str) -> str:
    """The JSON object at the beginning; the model may write on behind it (`tools_named_overrun`)."""
    try:
        _, end, _ = read(text)
    except Incomplete:
        return text
    return text[:end]


def _stream(chat: Chat, number: int) -> Work:
    fixed = {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": chat.body["model"],
        "choices": [],
    }
    writer = _Writer(chat, b"data: " + dumps(fixed)[:-2])
    deltas, called = _deltas(chat)
    finish = _finish(chat, called=called)
    steps: list[Frames] = []
    for step, delta in enumerate(deltas):
        last = finish if step == len(deltas) - 1 else None
        frames = tuple(writer.event(index, delta, step + 1, step, last) for index in range(chat.n))
        steps.append(writer.roles() + frames if step == 0 else frames)
    closing: Frames = (writer.usage_event(), DONE) if writer.usage else (DONE,)
    return _work(chat, finish, steps=steps, closing=closing)


class _Writer:
    """Renders events."""

    def __init__(self, chat: Chat, start: bytes) -> None:
        self.chat, self.start = chat, start
        options = chat.body.get("stream_options")
        # An empty object turns the usage on (`chat_stream_options_empty`).
        self.usage = options is not None and options.get("include_usage", True) is not False
        self.continuous = self.usage and bool(options and options.get("continuous_usage_stats"))

    def roles(self) -> Frames:
        """The first events. They have a blank before the line break, which the later ones have not."""
        tail = b"}]" + self._running(0) + b"} \n\n"
        return tuple(self.start + b'{"index":%d,"delta":' % index + ROLE + tail for index in range(self.chat.n))

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
        return b',"usage":' + dumps(_usage(self.chat.size, so_far)) if self.continuous else b""

    def usage_event(self) -> bytes:
        """The event behind the last choice."""
        total = self.chat.generated.tokens * self.chat.n
        return self.start + b'],"usage":' + dumps(_usage(self.chat.size, total)) + b"}\n\n"


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
    left = len(_until_closed(chat.generated.text))
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
