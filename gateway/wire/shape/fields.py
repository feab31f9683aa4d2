"""The members of OpenAI's answers, as data: what `extras: strip` keeps.

A test compares them with the response models of the installed `openai` package.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

REASONING: Final = frozenset({"reasoning", "reasoning_content"})
"""Not OpenAI's: whether and how they are given is for `reasoning.field` to say."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The members of one object.

    `nulls`: those that OpenAI itself gives as null, so that clients expect them. `inside`: members that are objects, or
    lists of objects, with members of their own to choose from; others are kept whole.
    """

    names: frozenset[str]
    nulls: frozenset[str] = frozenset()
    inside: Mapping[str, "Fields"] = field(default_factory=dict)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


USAGE: Final = Fields(
    _names("completion_tokens prompt_tokens total_tokens completion_tokens_details prompt_tokens_details"),
    inside={
        "completion_tokens_details": Fields(
            _names("accepted_prediction_tokens audio_tokens reasoning_tokens rejected_prediction_tokens text_tokens")
        ),
        "prompt_tokens_details": Fields(
            _names("audio_tokens cache_write_tokens cached_tokens image_tokens text_tokens")
        ),
    },
)
FUNCTION: Final = Fields(_names("name arguments"))
TOOL_CALL: Final = Fields(_names("id type function custom"), inside={"function": FUNCTION})
TOOL_CALL_DELTA: Final = Fields(_names("index id type function"), inside={"function": FUNCTION})
MESSAGE: Final = Fields(
    _names("content refusal role annotations audio function_call tool_calls") | REASONING,
    _names("content refusal"),
    {"function_call": FUNCTION, "tool_calls": TOOL_CALL},
)
DELTA: Final = Fields(
    _names("audio content function_call refusal role tool_calls") | REASONING,
    _names("content refusal"),
    {"function_call": FUNCTION, "tool_calls": TOOL_CALL_DELTA},
)
CHAT: Final = Fields(
    _names("id object created model choices metadata moderation service_tier system_fingerprint usage"),
    inside={
        "choices": Fields(
            _names("finish_reason index logprobs message"), _names("finish_reason logprobs"), {"message": MESSAGE}
        ),
        "usage": USAGE,
    },
)
CHAT_CHUNK: Final = Fields(
    _names("id object created model choices moderation obfuscation service_tier system_fingerprint usage"),
    _names("usage"),
    {
        "choices": Fields(
            _names("delta index finish_reason logprobs"), _names("finish_reason logprobs"), {"delta": DELTA}
        ),
        "usage": USAGE,
    },
)
COMPLETION: Final = Fields(
    _names("id object created model choices system_fingerprint usage"),
    _names("usage"),
    {
        "choices": Fields(_names("finish_reason index logprobs text"), _names("finish_reason logprobs")),
        "usage": USAGE,
    },
)
"""Whole or an event of a stream: OpenAI has one form for both."""
