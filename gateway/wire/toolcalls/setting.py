"""What one answer is read with."""

from dataclasses import dataclass

from gateway.wire.toolcalls.spec import Format, Reasoning


@dataclass(frozen=True, slots=True)
class Setting:
    """What one answer is read with.

    Args:
        format: the wire format.
        reasoning: how reasoning is fenced; None leaves it in the content.
        starts_in_reasoning: the prompt ended inside an open reasoning block.
        calls: whether calls are taken out; otherwise their text is content.
        guided: the engine was made to write JSON calls, or the arguments of one call.
        forced: the function that arguments without a name belong to.
    """

    format: Format
    reasoning: Reasoning | None
    starts_in_reasoning: bool = False
    calls: bool = True
    guided: bool = False
    forced: str = ""
