"""What one client library makes of the gateway's answers, as JSON on standard output.

    python -m tests.clients.libraries.NAME '{"base_url": …, "models": […], "embedding": …}'

A case is given a model's name. What it gives, or raises, is reported for every model; nothing is judged here, where
only the library is installed (``test_libraries.py`` judges).
"""

import asyncio
import json
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias

from pydantic import BaseModel

from tests.support.json_type import Json

HELLO = "Hello!"
STORY = "Tell me a story."
WEATHER = "What is the weather in Paris?"
TWO_CITIES = "What is the weather in Paris and Oslo?"
TOO_LONG = "word " * 5_000
PERSON = "Give me JSON."
TEXTS = ["a robot", "the sea"]
DESCRIPTION = "Get the current weather of a city."

Case: TypeAlias = Callable[[str], Awaitable[Json]]


class Person(BaseModel):
    """A person."""

    name: str
    age: int


class Ask(Protocol):
    """A question, put in the library's usual way; gives what ``said`` makes of the answer."""

    def __call__(self, model: str, text: str, *, streamed: bool, tools: bool = False) -> Awaitable[Json]: ...


class Agent(Protocol):
    """A question, the tool that the model calls, run, and the final answer."""

    def __call__(self, model: str, text: str, *, streamed: bool) -> Awaitable[Json]: ...


@dataclass(frozen=True, slots=True)
class Target:
    """Where the gateway is, and what it serves."""

    base_url: str
    models: list[str]
    embedding: str


def target() -> Target:
    return Target(**json.loads(sys.argv[1]))


def weather(city: str) -> str:
    """The tool that the model may call."""
    return f"21 degrees in {city}"


def call(identity: str | None, name: str, arguments: Json) -> Json:
    """A tool call; the arguments as the library gives them, parsed where it leaves them as text."""
    return {"id": identity, "name": name, "arguments": json.loads(arguments) if type(arguments) is str else arguments}


def said(text: str | None, calls: list[Json], finish: str | None, usage: tuple[int, int] | None) -> Json:
    """An answer; its usage is the numbers of tokens read and written."""
    return {"text": text or None, "calls": calls, "finish": finish, "usage": usage}


def numbers(vectors: Json) -> Json:
    """Vectors, cut down to what is worth comparing."""
    return [{"dimensions": len(vector), "first": [round(float(one), 5) for one in vector[:4]]} for vector in vectors]


async def ask_another(ask: Ask, model: str, *, streamed: bool) -> Json:
    """Asks a model that is not there."""
    return await ask(f"no-{model}", HELLO, streamed=streamed)


def cases(ask: Ask, agent: Agent) -> dict[str, Case]:
    """What is tried with every library, streamed and not."""
    found: dict[str, Case] = {}
    for name, streamed in (("", False), ("_streamed", True)):
        found |= {
            f"chat{name}": partial(ask, text=HELLO, streamed=streamed),
            f"story{name}": partial(ask, text=STORY, streamed=streamed),
            f"call{name}": partial(ask, text=WEATHER, streamed=streamed, tools=True),
            f"two_calls{name}": partial(ask, text=TWO_CITIES, streamed=streamed, tools=True),
            f"unused_tool{name}": partial(ask, text=HELLO, streamed=streamed, tools=True),
            f"agent{name}": partial(agent, text=WEATHER, streamed=streamed),
            f"too_long{name}": partial(ask, text=TOO_LONG, streamed=streamed),
            f"unknown_model{name}": partial(ask_another, ask, streamed=streamed),
        }
    return found


def outcome(result: Json) -> Json:
    if not isinstance(result, BaseException):
        return {"gave": result}
    return {
        "raised": [kind.__name__ for kind in type(result).__mro__],
        "status": getattr(result, "status_code", None),
        "code": getattr(result, "code", None) or (getattr(result, "body", None) or {}).get("code"),
        "text": str(result),
        "trace": "".join(traceback.format_exception(result))[-4000:],
    }


async def run(chats: Mapping[str, Case], embeddings: Mapping[str, Case]) -> None:
    """Prints ``{case: {model: outcome}}``."""
    given = target()
    pairs = [(name, case, model) for name, case in chats.items() for model in given.models]
    pairs += [(name, case, given.embedding) for name, case in embeddings.items()]
    report: dict[str, dict[str, Json]] = {}
    for name, case, model in pairs:
        # gather hands an exception over instead of raising it.
        (result,) = await asyncio.gather(case(model), return_exceptions=True)
        report.setdefault(name, {})[model] = outcome(result)
    json.dump(report, sys.stdout)


def main(ask: Ask, agent: Agent, objects: Mapping[str, Case], embeddings: Mapping[str, Case]) -> None:
    """Runs everything.

    Args:
        ask: puts a question.
        agent: lets the model call the tool and answer.
        objects: the library's ways to get a person instead of a text.
        embeddings: its ways to get the vectors of two texts.
    """
    asyncio.run(run({**cases(ask, agent), **objects}, embeddings))
