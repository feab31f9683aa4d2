"""What is known about a model on an engine when its tool calls are concerned, and how well."""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

from engines.profile import EngineKind
from gateway.wire.toolcalls import Format, UnknownFormatError, format_named
from gateway.wire.toolcalls.detect import NOTHING, Finding, from_name
from gateway.wire.toolcalls.quirks import Quirk, quirks_for

NO_PARSER: Final = "none"
"""What configuration calls an engine without a tool parser."""


class Parse(StrEnum):
    """A model's `tools.parse`: who turns the model's text into calls."""

    AUTO = "auto"
    ENGINE = "engine"
    GATEWAY = "gateway"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about a model on an engine.

    Args:
        kind: the engine's software.
        parse: the model's setting.
        found: the model's format and why; empty if it is not known.
        parser: the tool parser that the engine was started with; `none` without one, None if nobody knows.
        learnt: the engine itself has said that it has no parser.
        guided: trtllm-serve was started with a guided decoding backend.
        version: the engine's; empty if it is not known.
        engine: its name in the configuration.
    """

    kind: EngineKind
    parse: Parse = Parse.AUTO
    found: Finding = NOTHING
    parser: str | None = None
    learnt: bool = False
    guided: bool = False
    version: str = ""
    engine: str = "NAME"

    @property
    def wire(self) -> Format | None:
        """The model's format."""
        return format_named(self.found.format) if self.found.format else None

    @property
    def parses(self) -> bool | None:
        """Whether the engine has a tool parser; None if nobody knows."""
        if self.learnt or self.parser == NO_PARSER:
            return False
        return None if self.parser is None else True

    @property
    def quirks(self) -> frozenset[Quirk]:
        """What the engine's parser is known for."""
        return _quirks(self.kind, self.version, self.parser or _LIKELY.get(self.kind, ""))


_LIKELY: Final = {EngineKind.TRITON: "llama3"}
"""The parser whose habits are expected where it is not known: Triton has two, and this one has more of them."""

_MISTRAL_OF_TRITON: Final = "mistral_v3"


@lru_cache(maxsize=256)
def _quirks(kind: EngineKind, version: str, parser: str) -> frozenset[Quirk]:
    return quirks_for(kind.value, version, parser)


@lru_cache(maxsize=1024)
def known_format(configured: str, parser: str | None, kind: EngineKind, *names: str) -> Finding:
    """The format of a model, from the best evidence there is.

    Args:
        configured: the model's `tools.format`; `auto` and the empty string say nothing.
        parser: the engine's parser, if it is known.
        names: the model's names, the engine's first.

    Raises:
        UnknownFormatError: nobody calls a format what is configured.
    """
    if configured and configured != "auto":
        return Finding(format_named(configured).name, "configuration", configured)
    if parser is not None and parser != NO_PARSER:
        return Finding(_of_parser(parser, kind), "parser", parser)
    return next((found for name in names if (found := from_name(name)).format), NOTHING)


def _of_parser(parser: str, kind: EngineKind) -> str:
    if kind is EngineKind.TRITON and parser == "mistral":  # elsewhere it is the name for the newer form
        return _MISTRAL_OF_TRITON
    try:
        return format_named(parser).name
    except UnknownFormatError:
        return ""
