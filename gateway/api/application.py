"""The FastAPI application. It also answers the forwarded paths by itself, so it runs under any ASGI server."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from importlib.metadata import PackageNotFoundError, version

from fastapi import APIRouter, FastAPI
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from engines.profile import Operation
from gateway.api import admin, errors, models, openapi, ops, status
from gateway.api.view import View
from gateway.proxy.asgi import carry
from gateway.proxy.paths import FORWARDED
from gateway.wire.cors import ALLOWED_HEADERS, EXPOSED_HEADERS


class ForwardedPath:
    """The ASGI application of one forwarded path."""

    def __init__(self, view: View, operation: Operation) -> None:
        self._view = view
        self._operation = operation

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        await carry(self._view.plane, self._operation, scope, receive, send)


def build_api(
    view: View,
    lifespan: Callable[[FastAPI], AbstractAsyncContextManager[None]],
) -> FastAPI:
    """Makes the application for a running gateway."""
    app = FastAPI(
        title="Turnout",
        version=product_version(),
        lifespan=lifespan,
        middleware=[Middleware(CrossOrigin, view)],
        docs_url=None,  # the usual pages load scripts from elsewhere
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        strict_content_type=False,  # none is fine; another one is not taken for JSON
    )
    errors.install(app)
    for part in (models, ops, status, admin):
        app.include_router(part.router(view))
    app.include_router(_document_route(app))
    for path, operation in FORWARDED.items():
        app.router.routes.append(Route(path, ForwardedPath(view, operation), methods=["POST"]))
    return app


class CrossOrigin:
    """Lets pages of the origins in that the configuration in force names."""

    def __init__(self, app: ASGIApp, view: View) -> None:
        self._app = app
        self._view = view
        self._origins: Sequence[str] = ()
        self._open = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request, or the lifespan."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        origins = self._view.plane.settings.server.cors_origins
        if origins != self._origins:
            self._origins, self._open = origins, self._opened(origins)
        await self._open(scope, receive, send)

    def _opened(self, origins: Sequence[str]) -> ASGIApp:
        if not origins:
            return self._app
        return CORSMiddleware(
            self._app,
            allow_origins=list(origins),
            allow_methods=["GET", "HEAD", "POST"],
            allow_headers=list(ALLOWED_HEADERS),
            expose_headers=list(EXPOSED_HEADERS),
        )


def _document_route(app: FastAPI) -> APIRouter:
    routes = APIRouter(include_in_schema=False)

    one_writes = asyncio.Lock()

    async def openapi_document() -> JSONResponse:
        async with one_writes:
            if app.openapi_schema is None:  # writing takes long enough to be beside the requests
                app.openapi_schema = await asyncio.to_thread(openapi.document, app)
        return JSONResponse(app.openapi_schema)

    routes.add_api_route("/openapi.json", openapi_document, methods=["GET", "HEAD"])
    return routes


def product_version() -> str:
    """The installed version, "0" where the package is not installed."""
    try:
        return version("turnout")
    except PackageNotFoundError:
        return "0"
