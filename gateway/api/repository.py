"""The models of a Triton's repository, for operators: their states, loading and unloading."""

from collections.abc import Callable, Sequence

from fastapi import APIRouter
from pydantic import BaseModel, Field

from engines.kserve import ModelEntry, Order
from gateway.api.bodies import AskedBody
from gateway.api.view import View
from gateway.errors import ApiError, EngineFailed, EngineUnavailable, InvalidRequest, ModelNotFound
from gateway.kserve.control import (
    Address,
    KServe,
    KServeError,
    MissingExtraError,
    ModelRefusedError,
    carry_out,
    connect,
)
from gateway.proxy.links import EngineLink


class ModelStatus(BaseModel):
    """One version of a model in the repository; one that was never loaded has neither version nor state."""

    name: str
    version: str
    state: str
    reason: str


class ModelOrder(AskedBody):
    """What is asked of which model."""

    model: str = Field(min_length=1, max_length=512, description="the model's name in the repository")
    action: Order = Field(description="load (also loads anew) or unload")


class NoRepository(InvalidRequest):
    """The engine has no KServe, as far as the configuration says."""

    code = "no_kserve"


class RepositoryRefused(InvalidRequest):
    """Triton does not do it; the message says why, as far as it says so."""

    status = 409
    code = "model_refused"


def router(view: View, link_of: Callable[[View, str], EngineLink]) -> APIRouter:
    """The routes, for the admin API to include. `link_of` raises where there is no such engine."""
    routes = APIRouter()

    async def list_models(name: str) -> list[ModelStatus]:
        """Gives the models of a Triton's repository with their states."""
        try:
            async with _triton(link_of(view, name)) as triton:
                return _told(await triton.index())
        except KServeError as error:
            raise _as_api_error(error) from None

    async def change_model(name: str, order: ModelOrder) -> list[ModelStatus]:
        """Loads or unloads a model, and answers when Triton is done; a model may take minutes."""
        try:
            async with _triton(link_of(view, name)) as triton:
                return _told(await carry_out(triton, order.action, order.model))
        except KServeError as error:
            raise _as_api_error(error) from None

    path = "/engines/{name}/models"
    routes.add_api_route(path, list_models, methods=["GET"], operation_id="list_repository")
    routes.add_api_route(path, change_model, methods=["POST"], operation_id="change_repository")
    return routes


def _triton(link: EngineLink) -> KServe:
    where = link.settings.kserve
    if where is None:
        name = link.engine.name
        raise NoRepository(f"The engine '{name}' has no kserve address in the configuration (engines.{name}.kserve).")
    return connect(Address(where.http or "", where.grpc or ""))


def _told(entries: Sequence[ModelEntry]) -> list[ModelStatus]:
    return [
        ModelStatus(name=one.name, version=one.version, state=one.state.value, reason=one.reason) for one in entries
    ]


def _as_api_error(error: KServeError) -> ApiError:
    match error:
        case ModelRefusedError(unknown=True):
            return ModelNotFound(str(error))
        case ModelRefusedError():
            return RepositoryRefused(str(error))
        case MissingExtraError():
            return EngineFailed(str(error), code="no_tritonclient")
        case _:
            return EngineUnavailable(str(error))
