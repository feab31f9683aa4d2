"""The context length: vLLM's two refusals, and the clamping it does without a word."""

from engines.simulator.vllm.errors import about

_CHARACTERS_PER_TOKEN = 13
"""vLLM refuses a text of more characters per token than this without tokenizing it (`wire_large_body`)."""

_HINT = "Please reduce the length of the input prompt."


def check_length(tokens: int, characters: int, max_length: int) -> None:
    """Raises `BadRequest` when the prompt leaves no room for an answer."""
    limit = f"This model's maximum context length is {max_length} tokens. However, your prompt contains"
    most = _CHARACTERS_PER_TOKEN * max_length
    if characters > most:
        rule = f"(more than {most} characters, which is the upper bound for {max_length} input tokens)"
        raise about("input_text", f"{limit} {characters} characters {rule}. {_HINT}", characters)
    if tokens >= max_length:
        rest = "input tokens, which exceeds this limit even without any output tokens."
        raise about("input_tokens", f"{limit} at least {max_length + 1} {rest} {_HINT}", max_length + 1)
