"""The configuration for operators: which one is in force, and reading its file again."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field, TypeAdapter

from gateway.api.fleet import ask
from gateway.api.orders import Reread
from gateway.api.view import View
from gateway.errors import InvalidRequest
from gateway.settings.redacted import redacted_tree


class ConfigStatus(BaseModel):
    """What is in force."""

    hash: str | None = Field(description="SHA-256 of the text of its files; null: engines named on the command line")
    loaded_at: float = Field(description="Unix seconds")
    source: str | None = Field(description="its file")
    error: str | None = Field(description="why the file as it is now is not in force; null: it is")
    restart_needed: list[str] = Field(description="what of the file holds only after a restart")


class WholeConfig(ConfigStatus):
    """What is in force, with all its keys."""

    settings: dict[str, Any] | None = Field(
        default=None,
        description="with ?full=true: what the file and the environment say; secrets as stars",
    )


class ConfigRefused(InvalidRequest):
    """The file cannot be used as it is."""

    code = "invalid_config"


class NoFile(InvalidRequest):
    """There is no file to read."""

    code = "no_config_file"


_STATUS = TypeAdapter(ConfigStatus)


def status(view: View) -> ConfigStatus:
    """What this process has in force."""
    state = view.config
    return ConfigStatus(
        hash=state.hash or None,
        loaded_at=state.loaded_at,
        source=state.source or None,
        error=state.error or None,
        restart_needed=list(state.waiting),
    )


def told(view: View) -> bytes:
    """The same for another process."""
    return _STATUS.dump_json(status(view))


def router(view: View) -> APIRouter:
    """The routes, for the admin API to include."""
    routes = APIRouter()

    async def show(
        *,
        full: Annotated[bool, Query(description="also give what is written down")] = False,
    ) -> WholeConfig:
        """Says which configuration is in force, since when, and what is wrong with its file now."""
        found = WholeConfig(**status(view).model_dump())
        if full:
            found.settings = redacted_tree(view.settings)
        return found

    async def reload() -> ConfigStatus:
        """Reads the file again and puts it in force, all or nothing."""
        found = await reread(view)
        if found.error is not None:
            raise ConfigRefused(f"The file cannot be used, and what was in force before still is. {found.error}")
        return found

    routes.add_api_route("/config", show, methods=["GET"], operation_id="get_config", response_model_exclude_unset=True)
    routes.add_api_route("/reload", reload, methods=["POST"], operation_id="reload_config")
    return routes


async def reread(view: View) -> ConfigStatus:
    """Reads the file, in whichever process does that, and gives what all have in force then.

    Raises:
        NoFile: the engines were named on the command line.
        ProcessesUnreachable: it is not certain that all processes have it.
    """
    if not view.config.source:
        raise NoFile("The engines were named on the command line: there is no file to read.")
    if view.ask_all is not None:
        found = [_STATUS.validate_json(reply) for reply in await ask(view.ask_all, Reread())]
        return next((one for one in found if one.error is not None), found[0])
    if view.reread is not None:
        await view.reread()
    return status(view)
