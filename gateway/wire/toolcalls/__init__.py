"""Tool calls and reasoning in raw model text, for every wire format.

    parse(text, format="hermes", tools=[…]) -> Parsed(content, reasoning, calls, finish_reason)

    stream = Stream("hermes", tools=[…])
    stream.feed("…")                    -> deltas that are certain
    stream.finish("stop")               -> the rest, and Finish(reason)

Pure: no I/O, no clock, no logging. Ids follow from `id_seed`, so that whoever serves conversations decides on chance.
"""

from gateway.wire.toolcalls.aliases import UnknownFormatError, format_named, reasoning_named
from gateway.wire.toolcalls.deltas import (
    Call,
    CallArguments,
    CallEnd,
    CallStart,
    Delta,
    Finish,
    Parsed,
    ReasoningDelta,
    TextDelta,
)
from gateway.wire.toolcalls.formats import FORMATS
from gateway.wire.toolcalls.spec import Format
from gateway.wire.toolcalls.stream import Stream, collect, parse

__all__ = [
    "FORMATS",
    "Call",
    "CallArguments",
    "CallEnd",
    "CallStart",
    "Delta",
    "Finish",
    "Format",
    "Parsed",
    "ReasoningDelta",
    "Stream",
    "TextDelta",
    "UnknownFormatError",
    "collect",
    "format_named",
    "parse",
    "reasoning_named",
]
