"""Who reads a model's tool calls on an engine, and why: for status pages and people who look for a mistake."""

from dataclasses import dataclass
from typing import assert_never

import msgspec

from gateway.wire.toolcalls.choice import Choice
from gateway.wire.tools.ask import Ask
from gateway.wire.tools.facts import Facts
from gateway.wire.tools.plan import EngineParses, Forced, Named, Off, Raw, Refused, Union, plan


@dataclass(frozen=True, slots=True)
class Explained:
    """What happens to a request with tools whose choice is left to the model.

    Args:
        reader: `engine`, `gateway` or `nobody`.
        why: the reason for that, a clause about the engine or the setting.
        format: the model's; empty if it is not known, so that markup has to show what it is.
        source: where the format is known from: `configuration`, `parser` or `name`; empty if it is not.
        evidence: what was found there.
    """

    reader: str
    why: str
    format: str
    source: str
    evidence: str


def explain(facts: Facts) -> Explained:
    """Says what `plan` decides for an ordinary request, in words."""
    decided = plan(facts, Ask(msgspec.Raw(b"[]"), Choice()))
    found = facts.found
    match decided:
        case Off(why):
            reader = "nobody"
        case EngineParses(why):
            reader = "engine"
        case Raw(why):
            reader = "gateway"
        case Forced(why) | Named(why) | Union(why) | Refused(_, why):  # only calls that are forced come to this
            reader = "gateway"
        case _:
            assert_never(decided)
    return Explained(reader, why, found.format, found.source, found.evidence)
