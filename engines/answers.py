"""What is odd about an engine's answers, next to OpenAI's, as data. Habits of its tool parsers are not listed here."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answers:
    """The oddities of one engine kind's chat and completions answers; as it stands: none."""

    hollow_deltas: bool = False
    """Its chat deltas carry members that say nothing, and deltas of nothing else are common.

    Triton says `"role": null, "function_call": null` in each (`chat_stream`); trtllm-serve says `"content": ""` and
    `"reasoning_content": ""`, one delta per token while a tool call is read (`tools_auto_q_one_stream`).
    """
    hides_length: bool = False
    """It says `stop` where the token limit ended the answer; only `usage` tells (Triton, `chat_finish_length_stream`).

    Its streams report usage on request (`stream_options.include_usage`).
    """
    cuts_refusals: bool = False
    """A stream that its engine refuses (a prompt that is too long) is cut before its first token, without a word.

    The same request in one piece gets its error (Triton, `chat_engine_error_stream_start`).
    """
    limits: tuple[str, ...] = ("max_completion_tokens", "max_tokens")
    """The request members that limit the tokens of an answer; the first that was sent holds."""
