"""A question about tools as the gateway would put it, and its answer as the gateway reads it (`gateway.wire.tools`)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from engines.policy import ParameterRefused
from engines.profile import Operation
from gateway.doctor.asking import Heard, Question
from gateway.doctor.checks.inference import as_read
from gateway.doctor.subject import Subject, raw, user
from gateway.wire.shape import Event, Stage, read_event
from gateway.wire.shape.event import said_in
from gateway.wire.tools import Parse, Plan, Raw, Tooled, plan, prepare, read_ask

NAME: Final = "get_weather"
TOOLS: Final = [
    {
        "type": "function",
        "function": {
            "name": NAME,
            "description": "The weather in a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]
LIMIT: Final = 64
"""Tokens that a call may take."""

_QUESTION: Final = "What is the weather in Paris?"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about tools, as the gateway would put it."""

    question: Question
    plan: Plan
    tooled: Tooled


@dataclass(frozen=True, slots=True)
class Seen:
    """What a client would see of the answer. ``leaked``: the format of markup that the engine let through."""

    calls: Sequence[Mapping[str, Any]]
    content: str
    leaked: str

    @property
    def right(self) -> bool:
        """A call of the tool with the arguments that it asks for."""
        for call in self.calls:
            function = call.get("function") or {}
            try:
                arguments = msgspec.json.decode(str(function.get("arguments")))
            except msgspec.DecodeError:
                return False
            if function.get("name") != NAME or not isinstance(arguments, dict) or "city" not in arguments:
                return False
        return bool(self.calls)


def asked(subject: Subject, choice: object, decided: Plan | None = None, *, stream: bool = False) -> Asked | None:
    """A question with the tool and a choice; None if it is not asked, or the gateway itself would refuse it."""
    if subject.settings.task != "chat" or subject.facts.parse is Parse.OFF:
        return None
    given: dict[str, object] = {"messages": user(_QUESTION), "tools": TOOLS, "max_tokens": LIMIT, "temperature": 0}
    given |= {} if choice == "auto" else {"tool_choice": choice}
    given |= {"stream": True} if stream else {}
    members = raw(given)
    ask = read_ask(members)
    if ask is None:
        return None
    chosen = decided or plan(subject.facts, ask)
    try:
        tooled = prepare(chosen, subject.facts, ask, members)
    except ParameterRefused:
        return None
    question = subject.asks(Operation.CHAT, given, tooled=tooled)
    return None if question is None else Asked(question, chosen, tooled)


def plain(subject: Subject) -> Asked | None:
    """The same with the model's own text for an answer, whoever reads calls."""
    return asked(subject, "auto", Raw("the model's own words are wanted"))


def seen(subject: Subject, one: Asked, heard: Heard) -> Seen:
    """The answer as the gateway reads it."""
    leaks: list[str] = []
    reading = one.tooled.reading
    message = as_read(heard, None if reading is None else reading.stage(subject.rule, 1, leaks.append, "doctor"))
    calls = message.get("tool_calls")
    content = message.get("content")
    return Seen(
        [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else [],
        content if isinstance(content, str) else "",
        leaks[0] if leaks else "",
    )


def seen_in_stream(subject: Subject, one: Asked, heard: Heard) -> Seen:
    """The events as the gateway reads them, put together as clients do it."""
    leaks: list[str] = []
    reading = one.tooled.reading
    stage = Stage() if reading is None else reading.stage(subject.rule, 1, leaks.append, "doctor")
    calls: dict[int, dict[str, str]] = {}
    texts: list[str] = []
    try:
        for event in _events(stage, heard.body):
            for delta in said_in(event, "delta"):
                texts.append(delta.get("content") or "")
                for part in delta.get("tool_calls") or ():
                    call = calls.setdefault(part["index"], {"name": "", "arguments": ""})
                    for name, text in (part.get("function") or {}).items():
                        call[name] += text or ""
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):  # no events of OpenAI's kind
        return Seen((), "", "")
    return Seen([{"function": call} for call in calls.values()], "".join(texts), leaks[0] if leaks else "")


def _events(stage: Stage, body: bytes) -> Iterable[Event]:
    for line in body.split(b"\n"):
        payload = line.removeprefix(b"data:").strip()
        if line.startswith(b"data:") and payload != b"[DONE]":
            event = read_event(payload)
            taken = stage.take(event)
            yield from (event,) if taken is None else taken
    yield from stage.end()
