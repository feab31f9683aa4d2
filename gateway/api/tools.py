"""Tool calls for operators: who reads those of which model and why, and what the parser makes of a text."""

from typing import Annotated, Any, Final

from fastapi import APIRouter, Body
from pydantic import BaseModel, Field

from gateway.api.bodies import AskedBody
from gateway.api.view import View
from gateway.errors import InvalidRequest
from gateway.wire.toolcalls import UnknownFormatError, parse

LONGEST: Final = 256 * 1024
"""Characters of a text to be parsed: it is read on the loop that serves everybody."""


class Reader(BaseModel):
    """Who reads the tool calls of a model on an engine."""

    model: str
    engine: str
    reader: str = Field(description="engine, gateway or nobody")
    why: str
    format: str | None = Field(description="the model's format; null: markup has to show what it is")
    source: str | None = Field(description="configuration, parser or name")
    evidence: str | None


class Text(AskedBody):
    """A model's raw text, and what the request offered."""

    text: str = Field(max_length=LONGEST)
    format: str = Field(description="a format, or any engine's name for it")
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    reasoning: str = "auto"
    starts_in_reasoning: bool = False
    parallel_tool_calls: bool = True
    finish_reason: str | None = "stop"


class Call(BaseModel):
    """One call; `complete`: the model wrote it to its end."""

    id: str
    name: str
    arguments: str
    complete: bool


class Parsed(BaseModel):
    """What the text says."""

    content: str | None
    reasoning: str | None
    tool_calls: list[Call]
    finish_reason: str
    repairs: dict[str, int] = Field(description="how often each leniency was needed")


def router(view: View) -> APIRouter:
    """The routes, for the admin API to include."""
    routes = APIRouter(prefix="/tools")

    async def list_readers() -> list[Reader]:
        """Gives for every model, and each of its engines, who reads its tool calls and why."""
        return readers(view)

    async def parse_text(given: Annotated[Text, Body()]) -> Parsed:
        """Reads reasoning, content and tool calls out of a model's raw text."""
        return parsed(given)

    routes.add_api_route("", list_readers, methods=["GET"], operation_id="list_tool_readers")
    routes.add_api_route("/parse", parse_text, methods=["POST"], operation_id="parse_tool_calls")
    return routes


def readers(view: View) -> list[Reader]:
    """One entry for each model on each of its engines, aliases left out; models for other tasks call no tools."""
    found = []
    for name, asked in view.plane.asked.items():
        if name != asked.route.model or asked.task != "chat":
            continue
        for engine, destination in asked.destinations.items():
            told = destination.tooling.explained
            found.append(
                Reader(
                    model=name,
                    engine=engine,
                    reader=told.reader,
                    why=told.why,
                    format=told.format or None,
                    source=told.source or None,
                    evidence=told.evidence or None,
                )
            )
    return found


def parsed(given: Text) -> Parsed:
    """What the parser makes of it. Raises InvalidRequest for a format that nobody knows."""
    try:
        made = parse(
            given.text,
            format=given.format,
            tools=given.tools,
            tool_choice=given.tool_choice,
            reasoning=given.reasoning,
            starts_in_reasoning=given.starts_in_reasoning,
            parallel=given.parallel_tool_calls,
            finish_reason=given.finish_reason,
        )
    except UnknownFormatError as error:
        message = str(error)
        param = "reasoning" if message.startswith("unknown reasoning") else "format"
        raise InvalidRequest(f"{message[:1].upper()}{message[1:]}.", param=param, code="invalid_value") from None
    calls = [Call(id=one.id, name=one.name, arguments=one.arguments, complete=one.complete) for one in made.calls]
    return Parsed(
        content=made.content,
        reasoning=made.reasoning,
        tool_calls=calls,
        finish_reason=made.finish_reason,
        repairs=made.repairs,
    )
