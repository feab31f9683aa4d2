"""Every error of the control plane in the one shape that clients know from the data plane (CONTRACT §4)."""

from collections.abc import Mapping
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from engines.profile import Operation
from gateway.errors import ApiError, GatewayFailed, InvalidRequest, MethodNotAllowed, ModelNotFound
from gateway.proxy.paths import PATHS
from gateway.wire import anthropic

_ANTHROPIC_PATH: Final = PATHS[Operation.MESSAGES]
_SHOWN: Final = 200
"""Characters of a client's path that a message repeats."""


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
        error = PathNotFound(_not_there(request.url.path))
    elif status == 405:
        error = MethodNotAllowed(_not_taken(raised))
    elif status == 400:  # what FastAPI says of a body that it cannot read
        error = InvalidRequest("The request body cannot be read: it is not JSON in UTF-8, or it is nested too deeply.")
    elif status < 500:
        error = InvalidRequest("The request cannot be served as it is.")
        error.status = status
    else:
        error = GatewayFailed("The gateway could not serve the request.")
    response = error_response(error, request.url.path)
    if isinstance(raised, HTTPException) and raised.headers:
        response.headers.update(raised.headers)
    return response


def _not_there(path: str) -> str:
    hint = f" Try {path.rstrip('/')[:_SHOWN]} without the slash at its end." if path.rstrip("/") != path else ""
    return f"There is nothing at this path.{hint} GET /openapi.json lists all paths."


def _not_taken(raised: Exception) -> str:
    allowed = (raised.headers or {}).get("Allow") if isinstance(raised, HTTPException) else None
    return f"This path does not take this method{f'; it takes {allowed}' if allowed else ''}."


async def _api_error(_request: Request, raised: Exception) -> Response:
    return error_response(raised if isinstance(raised, ApiError) else internal_error())


async def _invalid(_request: Request, raised: Exception) -> Response:
    where, what = None, "The request is not valid."
    if isinstance(raised, RequestValidationError) and raised.errors():
        where, what = _first_fault(raised.errors()[0])
    return error_response(InvalidRequest(what, param=where))


def _first_fault(fault: Mapping[str, Any]) -> tuple[str | None, str]:
    """The parameter and the sentence for one of pydantic's errors."""
    where = ".".join(map(str, fault["loc"][1:])) or None
    match fault["type"]:
        case "json_invalid":
            return None, f"The request body is not valid JSON: {fault['ctx']['error']}."
        case "model_attributes_type" | "dict_type" if where is None:
            return None, "The request body must be a JSON object, and its content-type: application/json."
        case "missing" if where is None:
            return None, "The request has no body; a JSON object is expected."
        case "missing":
            return where, f"'{where}' is required."
        case "extra_forbidden":
            return where, f"'{where}' is not known here."
        case _:
            reason = str(fault["msg"]).removeprefix("Value error, ").removeprefix("Input ")
            return where, f"'{where}' {reason}." if where else f"The request body {reason}."


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
