"""What an edit would change, for operators: the same as `turnout plan` says, by the gateway itself."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body
from pydantic import Field

from gateway.api.bodies import AskedBody
from gateway.api.configuration import ConfigRefused
from gateway.api.view import View
from gateway.settings.loading import validate
from gateway.settings.problems import Path, Problem, dotted
from gateway.settings.secrets import SECRET_FILE
from gateway.settings.tree import Settings

_MOST: Final = 20
"""Problems that an answer names."""


class Edited(AskedBody):
    """A configuration that might be."""

    settings: dict[str, Any] = Field(
        description="as GET /admin/config?full=true gives it; variables and files are not looked up"
    )
    probe: bool = Field(default=True, description="really ask what is new whether it is there")


def router(view: View) -> APIRouter:
    """The route, for the admin API to include."""
    routes = APIRouter()

    async def plan(given: Annotated[Edited, Body()]) -> dict[str, Any]:
        """Says what would change for clients, and which models would lose their last healthy target."""
        return await view.plan(_settings(given.settings), probe=given.probe)

    routes.add_api_route("/plan", plan, methods=["POST"], operation_id="plan_config")
    return routes


def _settings(tree: dict[str, Any]) -> Settings:
    """The settings that were sent. Raises ConfigRefused with what is wrong with them.

    Whoever may ask is not therefore allowed to read this machine's files, so that none are read for him.
    """
    for path, text in _texts(tree):
        if text.startswith(SECRET_FILE):
            raise ConfigRefused(f"{dotted(path)}: no file is read for a plan: send the secret, or stars in its place")
    settings, findings = validate(tree)
    if findings or settings is None:
        told = (str(Problem(one.message, dotted(one.path), one.suggestion)) for one in findings[:_MOST])
        raise ConfigRefused(f"The settings cannot be used. {'; '.join(told)}")
    return settings


def _texts(value: object, path: Path = ()) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner, (*path, str(key)))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _texts(inner, (*path, index))
