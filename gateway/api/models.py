"""What can be asked for: `/v1/models`. It reads the configuration, so it never fails because an engine is down."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from gateway.api.view import View
from gateway.errors import ModelNotFound
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


def router(view: View) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["models"])

    async def list_models() -> ModelList:
        """Lists what is configured, one entry per name and alias."""
        return ModelList(data=[_entry(asked) for asked in view.plane.asked.values()])

    async def get_model(model: str) -> ModelEntry:
        """Gives one entry. The name may hold slashes."""
        asked = view.plane.asked.get(model)
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
