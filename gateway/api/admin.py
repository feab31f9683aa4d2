"""What operators may look at and change: the configuration, the engines, and which of their endpoints get requests.

With a token (`admin.token`) it is asked for; without one, only clients on this machine are let in, and no web pages: a
browser on this machine sends requests for any page.
"""

import hmac
from ipaddress import ip_address
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Depends, Request
from pydantic import Field

from engines.capabilities import capabilities_of
from gateway.api import configuration, doctor, observing, planning, repository, tools, usage
from gateway.api.bodies import AskedBody
from gateway.api.fleet import EngineStatus, everywhere
from gateway.api.view import View
from gateway.balance.drains import DrainOrder
from gateway.balance.endpoint import Endpoint
from gateway.errors import ApiError, AuthenticationFailed, ModelNotFound, PermissionDenied
from gateway.proxy.links import EngineLink
from gateway.settings.problems import did_you_mean

_LISTED: Final = 10
"""Names that a message lists at most."""

_SEND: Final = "Send it as 'Authorization: Bearer TOKEN'."

LOCAL_NAMES: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Which(AskedBody):
    """Which endpoints are meant."""

    url: str | None = Field(default=None, description="an endpoint's address as GET /admin/engines gives it; none: all")


class EngineNotFound(ModelNotFound):
    """No such engine, or no such endpoint of it."""

    code = "engine_not_found"


def router(view: View) -> APIRouter:
    """The routes."""

    async def only_operators(request: Request) -> None:
        refusal = _refusal(view, request)
        if refusal is not None:
            raise refusal

    routes = APIRouter(prefix="/admin", tags=["admin"], dependencies=[Depends(only_operators)])

    async def list_engines() -> list[EngineStatus]:
        """Gives every engine with the state of its endpoints."""
        return await everywhere(view)

    async def show_capabilities(name: str) -> dict[str, Any]:
        """Gives what becomes of each parameter at an engine, with the variants that fit its build and its settings."""
        return capabilities_of(_link(view, name).profile)

    async def drain(name: str, which: Annotated[Which | None, Body()] = None) -> EngineStatus:
        """Gives no more requests to an endpoint, or to all of the engine; what runs goes on."""
        return await _change(view, name, None if which is None else which.url, drained=True)

    async def undrain(name: str, which: Annotated[Which | None, Body()] = None) -> EngineStatus:
        """Takes an endpoint, or all of the engine, back into service."""
        return await _change(view, name, None if which is None else which.url, drained=False)

    routes.add_api_route("/engines", list_engines, methods=["GET"], operation_id="list_engines")
    routes.add_api_route(
        "/engines/{name}/capabilities", show_capabilities, methods=["GET"], operation_id="engine_capabilities"
    )
    routes.add_api_route("/engines/{name}/drain", drain, methods=["POST"], operation_id="drain_engine")
    routes.add_api_route("/engines/{name}/undrain", undrain, methods=["POST"], operation_id="undrain_engine")
    routes.include_router(repository.router(view, _link))
    routes.include_router(configuration.router(view))
    routes.include_router(doctor.router(view))
    routes.include_router(observing.router(view))
    routes.include_router(planning.router(view))
    routes.include_router(tools.router(view))
    routes.include_router(usage.router(view))
    return routes


def _link(view: View, name: str) -> EngineLink:
    """The engine of this name. Raises EngineNotFound."""
    link = view.plane.engines.get(name)
    if link is None:
        there = ", ".join(sorted(view.plane.engines)[:_LISTED])
        hint = did_you_mean(name, view.plane.engines) or f"there is: {there}"
        raise EngineNotFound(f"There is no engine '{name[:200]}' ({hint}). GET /admin/engines lists all.")
    return link


async def _change(view: View, name: str, url: str | None, *, drained: bool) -> EngineStatus:
    link = _link(view, name)
    if url is not None:
        there = [endpoint.url for endpoint in link.engine.endpoints]
        found = _address(url)
        if found not in there:
            has = ", ".join(there[:_LISTED]) or "none now"
            raise EngineNotFound(
                f"The engine '{name}' has no replica {url[:200]}; it has {has}. GET /admin/engines lists all."
            )
        url = found
    changed = await everywhere(view, DrainOrder(name, url, drained))
    return next(engine for engine in changed if engine.name == name)


def _address(url: str) -> str:
    """A replica's address as `GET /admin/engines` gives it, of how people and files spell it: a slash at its end, no
    scheme, capital letters."""
    text = url.strip()
    try:
        return Endpoint(text if "://" in text else f"http://{text}").url
    except ValueError:
        return text


def _refusal(view: View, request: Request) -> ApiError | None:
    """Why a request may not come in; None if it may."""
    token = view.plane.settings.admin.token
    if token is not None:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        right = hmac.compare_digest(given.strip().encode(), token.get_secret_value().encode())
        if right and scheme.lower() == "bearer":
            return None
        return AuthenticationFailed(f"The admin token is missing or wrong. {_SEND}", code="invalid_admin_token")
    if "origin" in request.headers or not _is_local(request):
        why = "Without admin.token in the configuration, /admin is for this machine only, and for no web page."
        return PermissionDenied(f"{why} Set one. {_SEND}")
    return None


def _is_local(request: Request) -> bool:
    """Whether the peer is this machine and asked for it by a name of its own: a foreign name may be a page's trick."""
    host = request.headers.get("host", "")
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    try:
        peer = ip_address(request.client.host if request.client is not None else "")
    except ValueError:
        return False
    return peer.is_loopback and name.lower() in LOCAL_NAMES
