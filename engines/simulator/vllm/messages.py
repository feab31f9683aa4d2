"""What vLLM says about messages and tool choices behind its schema."""

from collections.abc import Mapping, Sequence
from typing import Any

from engines.simulator.models import SimulatedModel
from engines.simulator.prompt import text_of
from engines.simulator.schema import Body
from engines.simulator.vllm.errors import BadRequest, about

_PARTS = (
    "audio_embeds, audio_url, image_embeds, image_pil, image_url, input_audio, input_image, input_text, output_text, "
    "prompt_embeds, refusal, text, thinking, tool_reference, video_embeds, video_url"
)
_TEXT_PARTS = ("text", "input_text", "output_text", "refusal", "thinking")


def check_messages(messages: Sequence[Mapping[str, Any]], body: Body, model: SimulatedModel) -> None:
    if body.get("chat_template") is not None:
        refused = "Chat template is passed with request, but --trust-request-chat-template is not set."
        raise BadRequest(f"{refused} Refused request with untrusted chat template.")
    if not messages:
        raise BadRequest("Cannot apply chat template to an empty conversation. Provide at least one message.")
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            kind = part.get("type") if isinstance(part, dict) else None
            if kind == "file":
                raise about("type", f"Unsupported chat content part type: '{kind}'. Supported types: {_PARTS}.", kind)
            if kind not in _PARTS.split(", "):
                raise BadRequest(f"1 validation error for ValidatorIterator\n0.type\n  Unknown part type {kind!r}")
            if kind not in _TEXT_PARTS:
                raise BadRequest(f"{model.name} is not a multimodal model")
        _check_text(text_of(content))


def _check_text(text: str) -> None:
    """Lone surrogates, which JSON can write and UTF-8 cannot (`chat_lone_surrogate`)."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = "TextEncodeInput must be Union[TextInputSequence, Tuple[InputSequence, InputSequence]]"
        raise BadRequest(message) from error


def choice_of(body: Body, model: SimulatedModel) -> str:
    tools, choice = body.get("tools"), body.get("tool_choice")
    if not tools:
        return ""
    if isinstance(choice, dict):
        if not model.parser:
            name = choice["function"]["name"]
            raise BadRequest(f'tool_choice=function "{name}" requires --tool-call-parser to be set')
        return "named"
    if choice == "required" and not model.parser:
        raise BadRequest('tool_choice="required" requires --tool-call-parser to be set')
    if choice in (None, "auto") and not model.parser:
        raise BadRequest('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set')
    return choice or "auto"
