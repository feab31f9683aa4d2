"""What can be asked for: `/v1/models`. It reads the configuration, so it never fails because an engine is down."""

from collections.abc import Iterator

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from gateway.api.view import View
from gateway.errors import ModelNotFound
from gateway.proxy.callers import Caller
from gateway.proxy.plane import Asked


class ModelEntry(BaseModel):
    """One name that requests may carry."""

    id: str
    object: str = "model"
    created: int = Field(description="Unix seconds at which the configuration was loaded")
    owned_by: str = "turnout"


class ModelList(BaseModel):
    """Every name and alias."""

    object: str = "list"
    data: list[ModelEntry]


def _entry(asked: Asked) -> ModelEntry:
    return ModelEntry(id=asked.name, created=asked.route.created)


def _caller(view: View, request: Request) -> Caller | None:
    """Who asks. Raises AuthenticationFailed where a key is needed and none is good."""
    guard = view.plane.guard
    if guard is None:
        return None
    caller = guard.caller(None, request.headers.raw)
    guard.let_in(caller)
    return caller


def _usable(view: View, request: Request) -> Iterator[Asked]:
    """What the caller may ask for."""
    caller = _caller(view, request)
    for asked in view.plane.asked.values():
        if caller is None or caller.may_ask(asked.name, asked.route.model):
            yield asked


def router(view: View) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["models"])

    async def list_models(request: Request) -> ModelList:
        """Lists what the caller may use, one entry per name and alias."""
        return ModelList(data=[_entry(asked) for asked in _usable(view, request)])

    async def get_model(model: str, request: Request) -> ModelEntry:
        """Gives one entry. The name may hold slashes."""
        asked = next((asked for asked in _usable(view, request) if asked.name == model), None)
        if asked is None:
            raise ModelNotFound(
                f"The model '{model[:200]}' does not exist. GET /v1/models lists what can be asked for.", param="model"
            )
        return _entry(asked)

    routes.add_api_route("/v1/models", list_models, methods=["GET"], operation_id="list_models")
    routes.add_api_route("/v1/models/", list_models, methods=["GET", "HEAD"], include_in_schema=False)
    routes.add_api_route("/v1/models/{model:path}", get_model, methods=["GET"], operation_id="get_model")
    routes.add_api_route("/v1/models", list_models, methods=["HEAD"], include_in_schema=False)
    return routes
