"""vLLM's error bodies."""

from collections.abc import Sequence

from engines.simulator.schema import Issue
from engines.simulator.wire import Reply, reply


class BadRequest(Exception):
    """A request that vLLM refuses; `body` is its answer."""

    def __init__(
        self, message: str, param: str | None = None, status: int = 400, kind: str = "BadRequestError"
    ) -> None:
        super().__init__(message)
        self.reply = error(status, message, kind, param)


def error(status: int, message: str, kind: str, param: str | None = None) -> Reply:
    """`{"error": {message, type, param, code}}`; the code is a number."""
    return reply(status, {"error": {"message": message, "type": kind, "param": param, "code": status}})


def about(name: str, message: str, value: object = None, *, shown: bool = True) -> BadRequest:
    """A refusal that names its parameter in the message and in `param`."""
    tail = f", value={value}" if shown and value is not None else ""
    return BadRequest(f"{message} (parameter={name}{tail})", name)


def invalid(issues: Sequence[Issue]) -> BadRequest:
    """A validation error: 400 with type `Bad Request` and a dump in Python's notation."""
    dumped = []
    for issue in issues:
        shown: dict[str, object] = {
            "type": issue.type,
            "loc": _loc(issue),
            "msg": issue.msg,
            "input": _short(issue.input),
        }
        if issue.ctx is not None:
            shown["ctx"] = dict(issue.ctx)
        dumped.append(f"  {shown}")
    plural = "error" if len(issues) == 1 else "errors"
    message = "\n".join([f"{len(issues)} validation {plural}:", *dumped])
    return BadRequest(message, _loc(issues[0]), kind="Bad Request")


def _loc(issue: Issue) -> str:
    return ".".join(str(part) for part in issue.loc)


def _short(value: object) -> str:
    if isinstance(value, dict | list):
        return f"<{type(value).__name__} of {len(value)} items>"
    return str(value)


CRASHED = error(
    500, "EngineCore encountered an issue. See stack trace (above) for the root cause.", "InternalServerError"
)
BUSY = error(
    503,
    "The engine is currently busy and cannot accept new requests. Please try again later or on a different instance.",
    "Service Unavailable",
)
UNAUTHORIZED = reply(401, {"error": "Unauthorized"})
PREFLIGHT = Reply(
    400,
    b"Disallowed CORS origin",
    b"text/plain; charset=utf-8",
    (
        (
            b"vary",
            (
                b"Origin, Access-Control-Request-Method, Access-Control-Request-Headers, "
                b"Access-Control-Request-Private-Network"
            ),
        ),
    ),
)
"""No origin is allowed by default."""
UNREADABLE = reply(400, {"detail": "There was an error parsing the body"})


class WrongContentType(BadRequest):
    """A body that is not announced as exactly `application/json`."""

    def __init__(self) -> None:
        message = "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed"
        super().__init__(message, kind="Bad Request")
