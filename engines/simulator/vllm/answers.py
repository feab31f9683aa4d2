"""vLLM's parsing of a chat answer: reasoning and tool calls, whole and token by token."""

from typing import assert_never

from engines.simulator.generation import Generated
from engines.simulator.parsers.deltas import CallArguments, CallStart, Delta, ParsedCall, Text, split_reasoning
from engines.simulator.parsers.hermes import HermesStream, parse
from engines.simulator.sampling import quoted
from engines.simulator.vllm import render
from engines.simulator.vllm.accepted import Chat
from engines.simulator.wire import dumps


def message(chat: Chat, generated: Generated) -> render.Message:
    """The whole answer, parsed."""
    reasoning, content = None, generated.text
    if chat.thinking:
        parts = split_reasoning(generated.pieces, inside=True)
        reasoning = "".join(thought for thought, _ in parts) or None
        content = "".join(text for _, text in parts)
    thoughts = _reasoning_tokens(reasoning, generated, chat)
    calls: tuple[ParsedCall, ...] = ()
    if chat.calls_tools:
        before, found = parse(content)
        calls = tuple(found)
        if calls:
            content = before if before.strip() else ""
    if chat.body.get("include_reasoning") is False:
        reasoning = None
    shown: str | None = content
    if calls and chat.choice in ("required", "named"):
        shown = ""
    elif not content and (calls or chat.thinking):
        shown = None
    return render.Message(shown, reasoning, calls, _finish(chat, generated, called=bool(calls)), thoughts)


def _reasoning_tokens(reasoning: str | None, generated: Generated, chat: Chat) -> int | None:
    """Reasoning tokens for the usage; None without a reasoning parser."""
    if chat.model.reasoning is None:
        return None
    if reasoning is None:
        return 0
    return sum(1 for thought, _ in split_reasoning(generated.pieces, inside=True) if thought)


def _finish(chat: Chat, generated: Generated, *, called: bool) -> str:
    if called and generated.finish == "stop" and chat.choice in ("auto", "required"):
        return "tool_calls"
    return generated.finish


def steps(chat: Chat, generated: Generated) -> render.Streamed:
    """The answer token by token: the deltas as JSON, and the finish reason."""
    quiet = chat.body.get("include_reasoning") is False
    parts = [("", piece) for piece in generated.pieces]
    if chat.thinking:
        parts = split_reasoning(generated.pieces, inside=True)
    parser = HermesStream() if chat.calls_tools else None
    out: list[tuple[bytes, ...]] = []
    for thought, piece in parts:
        deltas: list[bytes] = []
        if thought and not quiet:
            deltas.append(b'{"reasoning":' + quoted(thought) + b"}")
        if piece:
            found: list[Delta] = parser.feed(piece) if parser else [Text(piece)]
            deltas.extend(_delta(delta, chat, quiet=quiet) for delta in found if not _dropped(delta, chat))
        out.append(tuple(deltas))
    called = parser is not None and parser.calls > 0
    reasoning = None
    if chat.model.reasoning is not None:
        reasoning = sum(1 for thought, _ in parts if thought)
    return render.Streamed(out, _finish(chat, generated, called=called), reasoning)


def _dropped(delta: Delta, chat: Chat) -> bool:
    """Forced calls carry no content beside them (`think_tool_required_stream`)."""
    return isinstance(delta, Text) and chat.choice in ("required", "named")


def _delta(delta: Delta, chat: Chat, *, quiet: bool) -> bytes:
    match delta:
        case Text():
            tail = b',"reasoning":null}' if quiet and chat.thinking else b"}"
            return b'{"content":' + quoted(delta.text) + tail
        case CallStart():
            start = {"id": render.call_id(), "type": "function", "index": delta.index, "function": {"name": delta.name}}
            return b'{"content":null,"tool_calls":[' + dumps(start) + b"]}"
        case CallArguments():
            head = b'{"content":null,"tool_calls":[{"index":%d,"function":{"arguments":' % delta.index
            return head + quoted(delta.text) + b"}}]}"
        case _:
            assert_never(delta)
