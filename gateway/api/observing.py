"""What operators look at when something is wrong: the errors of late, and more or less of the log."""

from typing import Annotated, Final

import msgspec
from fastapi import APIRouter, Body, Query
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from gateway import logs
from gateway.api.bodies import AskedBody
from gateway.api.fleet import ask
from gateway.api.orders import Errors, SetLevel
from gateway.api.view import View


class RecentError(BaseModel):
    """An error that a client was told."""

    model_config = ConfigDict(from_attributes=True)

    at: float = Field(description="Unix seconds")
    request_id: str
    operation: str
    model: str
    engine: str = Field(description='"" if no engine was reached')
    status: int = Field(description="as the client got it; 200 where a stream had begun")
    outcome: str
    code: str
    message: str
    attempts: int
    ms: float = Field(description="how long the request took")


class LogLevel(AskedBody):
    """The least that is written to the log."""

    level: logs.Level


_ERRORS: Final = msgspec.json.Decoder(list[logs.Noted])
_LEVEL: Final = TypeAdapter(LogLevel)


def told_errors(view: View) -> bytes:
    """The errors of late in this process, for another one."""
    return msgspec.json.encode(list(view.journal.recent) if view.started else [])


def told_level() -> bytes:
    """The level of this process, for another one."""
    return _LEVEL.dump_json(LogLevel(level=logs.level()))


def router(view: View) -> APIRouter:
    """The routes, for the admin API to include."""
    routes = APIRouter()

    async def list_errors(
        limit: Annotated[int, Query(ge=1, le=1000, description="the newest so many")] = 50,
        engine: Annotated[str | None, Query(description="of this engine only")] = None,
        model: Annotated[str | None, Query(description="of this model only")] = None,
    ) -> list[RecentError]:
        """Gives the errors that clients were told of late, the newest first; no bodies, no secrets."""
        found = [one for one in await recent(view) if engine in (None, one.engine) and model in (None, one.model)]
        return [RecentError.model_validate(one) for one in found[:limit]]

    async def get_level() -> LogLevel:
        """Says how much is written to the log."""
        return LogLevel(level=logs.level())

    async def put_level(wanted: Annotated[LogLevel, Body()]) -> LogLevel:
        """Writes less or more to the log, until a restart or until `logs.level` in the file changes."""
        if view.ask_all is None:
            logs.set_level(wanted.level)
        else:
            await ask(view.ask_all, SetLevel(wanted.level))
        return LogLevel(level=logs.level())

    routes.add_api_route("/errors", list_errors, methods=["GET"], operation_id="list_errors")
    routes.add_api_route("/log-level", get_level, methods=["GET"], operation_id="get_log_level")
    routes.add_api_route("/log-level", put_level, methods=["PUT"], operation_id="set_log_level")
    return routes


async def recent(view: View) -> list[logs.Noted]:
    """The errors of late in all processes, the newest first.

    Raises:
        ProcessesUnreachable: the other processes cannot be asked.
    """
    if view.ask_all is None:
        return list(view.journal.recent)
    found = [one for reply in await ask(view.ask_all, Errors()) for one in _ERRORS.decode(reply)]
    return sorted(found, key=lambda one: one.at, reverse=True)
