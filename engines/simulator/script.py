"""What a simulated model says. The default script repeats the dialogues of the tiny test model `tiny-chat`."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call as the model writes it. `arguments` is its JSON text, which may be broken on purpose."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Thought:
    """Reasoning in front of the answer."""

    text: str


Segment: TypeAlias = str | Call | Thought


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer: segments in the model's own markup, or `pieces` given token by token (to replay a recording)."""

    segments: tuple[Segment, ...] = ()
    pieces: tuple[str, ...] = ()
    finish: Literal["stop", "length"] = "stop"
    fails_after: int | None = None
    """The engine fails after this many tokens."""
    error: str = "the scripted engine failed"
    limited: bool = True
    """False for an answer that no token limit cuts, as in recordings whose scripted engines knew none."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What the script may look at: the last message's text, and the tools that the prompt shows."""

    text: str
    tools: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Name to JSON schema of the parameters."""
    tool_result: str | None = None
    """The last message when it is a tool's result."""
    asked: str = ""
    """The last user message; the same as `text` unless a tool's result follows it."""
    forced: str | None = None
    """The tool that a named or required choice asks for."""


Script: TypeAlias = Callable[[Turn], Answer]

STORY = (
    "Once upon a time a small robot lived on a hill above the sea. Every morning it counted the boats, "
    "and every evening it wrote the number in a blue book. One day no boat came back. The robot lit its "
    "lamp, walked down to the shore, and waited all night. At dawn the boats returned, one by one, and "
    "the robot wrote the number in its book and was happy. The end."
)
EMOJI = "Hi \U0001f44b\U0001f3fd! 日本語, русский, café, \U0001f468‍\U0001f469‍\U0001f467 and \U0001f680."
FALLBACK = "I am a tiny test model."

_GREETING = "Hello! How can I help you today?"
_PLAIN: Mapping[str, tuple[Segment, ...]] = {
    "Hello": (_GREETING,),
    "Hello!": (_GREETING,),
    "hello": (_GREETING,),
    "Hi": (_GREETING,),
    "Hi!": (_GREETING,),
    "Tell me a story.": (STORY,),
    "Send me emoji.": (EMOJI,),
    "What is 2+2?": ("2+2 is 4.",),
    "What is\n2+2?": ("2+2 is 4.",),
    "Give me JSON.": ('{"name": "Ada", "age": 36}',),
    "Think: what is 2+2?": (Thought("The user asks for 2+2. Two and two make four."), "2+2 is 4."),
}
_EMAIL = {"to": "ada@example.com", "body": 'Hi "Ada",\nsee C:\\temp — café \U0001f680 {ok} </b>'}
_EVENT = {
    "title": "Launch",
    "guests": ["Ada", "Bob"],
    "place": {"city": "Oslo", "room": {"floor": 3}},
    "minutes": 45,
    "price": 12.5,
    "private": True,
    "note": None,
}
_WITH_TOOL: Mapping[tuple[str, str], tuple[Segment, ...]] = {
    ("What time is it?", "get_time"): (Call("get_time", "{}"),),
    ("Email Ada.", "send_email"): (Call("send_email", json.dumps(_EMAIL, ensure_ascii=False)),),
    ("Create the launch event.", "create_event"): (Call("create_event", json.dumps(_EVENT)),),
    ("Make a broken call.", "get_weather"): (Call("get_weather", '{"city": "Par'),),
    ("Call an unknown tool.", "get_weather"): (Call("no_such_tool", '{"x": 1}'),),
}
_CITY = r"(\w[\w -]*?)"
_WEATHER_TWO = re.compile(rf"What is the weather in {_CITY} and {_CITY}\?")
_WEATHER = re.compile(rf"What is the weather in {_CITY}\?")
_CHECK = re.compile(rf"Check the weather in {_CITY}\.")
_THINK = re.compile(rf"Think: weather in {_CITY}\?")


def tiny_script(turn: Turn) -> Answer:
    """The answers of `tiny-chat`; anything it was not taught gets one fixed sentence."""
    if turn.tool_result is not None:
        return Answer((_after_tool(turn),))
    said = _with_tools(turn) if turn.tools else None
    if said is None:
        said = _PLAIN.get(turn.text)
    if said is None and not turn.tools and _WEATHER.fullmatch(turn.text):
        said = ("I cannot check the weather.",)
    if turn.forced is not None:
        return Answer(_forced(turn, turn.forced, said or ()))
    return Answer(said or (FALLBACK,))


def _with_tools(turn: Turn) -> tuple[Segment, ...] | None:
    for (text, tool), said in _WITH_TOOL.items():
        if text == turn.text and tool in turn.tools:
            return said
    if "get_weather" not in turn.tools:
        return None
    if found := _WEATHER_TWO.fullmatch(turn.text):
        return tuple(_weather(city) for city in found.groups())
    if found := _WEATHER.fullmatch(turn.text):
        return (_weather(found[1]),)
    if found := _CHECK.fullmatch(turn.text):
        return ("Let me check.\n", _weather(found[1]))
    if found := _THINK.fullmatch(turn.text):
        return (Thought("I need the weather tool."), _weather(found[1]))
    return None


def _weather(city: str) -> Call:
    return Call("get_weather", json.dumps({"city": city}, ensure_ascii=False))


def _after_tool(turn: Turn) -> str:
    number = re.search(r"\d+", turn.tool_result or "")
    city = _WEATHER.fullmatch(turn.asked)
    if number is None:
        return f"The tool says: {turn.tool_result}"
    return f"It is {number[0]} degrees in {city[1]}." if city else f"It is {number[0]} degrees."


def _forced(turn: Turn, name: str, said: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """A forced call: the one the model wanted, else a call with made-up arguments that fit the schema."""
    kept: tuple[Segment, ...] = tuple(part for part in said if isinstance(part, Thought))
    for part in said:
        if isinstance(part, Call) and part.name == name:
            return (*kept, part)
    made_up = example(turn.tools.get(name, {}))
    return (*kept, Call(name, json.dumps(made_up if isinstance(made_up, dict) else {}, ensure_ascii=False)))


def example(schema: Mapping[str, object], depth: int = 0) -> object:
    """A value that fits a JSON schema, as far as type, enum, const, anyOf, required and items say."""
    if "const" in schema:
        return schema["const"]
    options = schema.get("anyOf")
    if isinstance(options, list) and options and isinstance(options[0], dict) and depth < 8:
        return example(options[0], depth + 1)
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return choices[0]
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0] if kind else None
    if (kind == "object" or "properties" in schema) and depth < 8:
        return _example_object(schema, depth)
    if kind == "array" and depth < 8:
        items = schema.get("items")
        return [example(items, depth + 1)] if isinstance(items, dict) and schema.get("minItems") else []
    plain: Mapping[object, object] = {"string": "text", "integer": 1, "number": 1.5, "boolean": True, "array": []}
    return plain.get(kind, {} if kind in ("object", None) else None)


def _example_object(schema: Mapping[str, object], depth: int) -> dict[str, object]:
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return {}
    names = required if isinstance(required, list) else list(properties)
    return {str(name): example(properties.get(name) or {}, depth + 1) for name in names}
