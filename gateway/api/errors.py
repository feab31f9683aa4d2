"""Every error of the control plane in the one shape that clients know from the data plane (CONTRACT §4)."""

from typing import Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from engines.profile import Operation
from gateway.errors import ApiError, GatewayFailed, InvalidRequest, MethodNotAllowed, ModelNotFound
from gateway.proxy.paths import PATHS
from gateway.wire import anthropic

_ANTHROPIC_PATH: Final = PATHS[Operation.MESSAGES]
_HTTP_MESSAGES: Final = {404: "There is nothing at this path.", 405: "This path does not take this method."}


class PathNotFound(ModelNotFound):
    """Nothing is served at a path."""

    code = "path_not_found"


def error_response(error: ApiError, path: str = "") -> Response:
    """An error as an HTTP answer, in the shape that the clients of the path know."""
    body = anthropic.error_body(error) if path.startswith(_ANTHROPIC_PATH) else error.body()
    return Response(body, error.status, media_type="application/json")


async def _http_error(request: Request, raised: Exception) -> Response:
    status = raised.status_code if isinstance(raised, HTTPException) else 500
    error: ApiError
    if status == 404:
        error = PathNotFound(_HTTP_MESSAGES[404])
    elif status == 405:
        error = MethodNotAllowed(_HTTP_MESSAGES[405])
    elif status < 500:
        error = InvalidRequest("The request cannot be served as it is.")
        error.status = status
    else:
        error = GatewayFailed("The gateway could not serve the request.")
    response = error_response(error, request.url.path)
    if isinstance(raised, HTTPException) and raised.headers:
        response.headers.update(raised.headers)
    return response


async def _api_error(_request: Request, raised: Exception) -> Response:
    return error_response(raised if isinstance(raised, ApiError) else internal_error())


async def _invalid(_request: Request, raised: Exception) -> Response:
    where, what = None, "The request is not valid."
    if isinstance(raised, RequestValidationError) and raised.errors():
        first = raised.errors()[0]
        where = ".".join(map(str, first["loc"][1:])) or None
        what = f"{where}: {first['msg']}" if where else str(first["msg"])
    error = InvalidRequest(what, param=where)
    error.status = 422
    return error_response(error)


async def _unexpected(_request: Request, _raised: Exception) -> Response:
    return error_response(internal_error())


def internal_error() -> GatewayFailed:
    """What a client is told about a fault of ours; the log has the rest."""
    return GatewayFailed("The gateway failed. The log names the cause under this answer's x-request-id.")


def install(app: FastAPI) -> None:
    """Gives the application its error answers. The server logs what was not expected, once."""
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(ApiError, _api_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _unexpected)
