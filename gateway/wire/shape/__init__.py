"""Answers of engines made into what OpenAI's clients expect: a chain of stages over events, and over whole answers.

Pure: no I/O, no clock, no logging. An event or answer in which no stage changes anything is passed on as the bytes that
came; `Stage` says how a further one is added.
"""

from gateway.wire.shape.chain import Chain
from gateway.wire.shape.event import Event, read_event
from gateway.wire.shape.reasoning import ReasoningField
from gateway.wire.shape.shape import Extras, Shape
from gateway.wire.shape.stage import Stage

__all__ = ["Chain", "Event", "Extras", "ReasoningField", "Shape", "Stage", "read_event"]
