"""Correct OpenAI tool calls and reasoning from every engine: what to ask it for, and how to read what it answers.

Pure. For one request, `plan` decides by what is known of the model and its engine; `prepare` makes the members that the
engine gets and the `Reading` of its answer, which is a stage of the answer's chain (`gateway.wire.shape`).
"""

from gateway.wire.tools.ask import Ask, read_ask
from gateway.wire.tools.explain import Explained, explain
from gateway.wire.tools.facts import Facts, Parse, known_format
from gateway.wire.tools.plan import EngineParses, Forced, Named, Off, Plan, Raw, Refused, Union, plan
from gateway.wire.tools.prepare import Tooled, prepare
from gateway.wire.tools.reading import Reading
from gateway.wire.tools.thoughts import ReasoningRule

__all__ = [
    "Ask",
    "EngineParses",
    "Explained",
    "Facts",
    "Forced",
    "Named",
    "Off",
    "Parse",
    "Plan",
    "Raw",
    "Reading",
    "ReasoningRule",
    "Refused",
    "Tooled",
    "Union",
    "explain",
    "known_format",
    "plan",
    "prepare",
    "read_ask",
]
