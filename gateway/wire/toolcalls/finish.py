"""The finish reason that OpenAI's clients expect, from the engine's reason and what the answer holds."""

from typing import Final

_STOPPED: Final = frozenset(
    {"stop", "tool_calls", "function_call", "eos", "eos_token", "end_turn", "stop_sequence", "stop_str", "end"}
)
_CUT: Final = frozenset({"length", "max_tokens", "max_length", "max_output_tokens", "model_length"})


def cut(reason: str | None) -> bool:
    """Whether the engine stopped because of a token limit."""
    return reason in _CUT


def finish_reason(reason: str | None, *, calls: int, named: bool) -> str:
    """OpenAI's finish reason.

    `length` wins over everything; a model that stopped by itself gives `tool_calls` with calls, but `stop` where the
    client named the tool; other reasons (`content_filter`, `abort`) pass.

    Args:
        reason: the engine's; None counts as stopped.
        calls: how many calls the answer holds.
        named: the request named the tool.
    """
    if cut(reason):
        return "length"
    if reason is None or not reason or reason in _STOPPED:
        return "tool_calls" if calls and not named else "stop"
    return reason
