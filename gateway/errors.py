"""What clients are told when a call cannot be served: one tree, one JSON shape.

Every answer that is not a success leaves the gateway as ``{"error": {"message", "type", "param", "code"}}``
(CONTRACT §4), whatever engine or part of the gateway it comes from. Types and codes are OpenAI's where OpenAI has one.
"""

from typing import Final, Literal

import msgspec

ErrorType = Literal[
    "invalid_request_error",
    "authentication_error",
    "permission_error",
    "not_found_error",
    "rate_limit_error",
    "server_error",
]

RETRY_LATER: Final = 1.0
"""Seconds named in ``retry-after`` when nothing better is known."""


_LONGEST_NOTED: Final = 500
"""Characters."""


class ApiError(Exception):
    """A refusal or failure in the form in which a client sees it.

    ``status`` is the HTTP status (where headers have not been sent yet), ``retry_after`` is in seconds.
    ``should_retry`` becomes ``x-should-retry``, which the OpenAI SDKs obey.
    """

    status: int = 500
    type: ErrorType = "server_error"
    code: str | None = None
    lines: bytes = b""
    """Further header lines, each with its end."""

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        retry_after: float | None = None,
        should_retry: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.message = _clean(message)
        self.param = None if param is None else _clean(param)
        if code is not None:
            self.code = code
        self.retry_after = retry_after
        self.should_retry = should_retry

    @property
    def brief(self) -> str:
        """As much of the message as the log and the list of errors keep: it may repeat a client's words."""
        return self.message[:_LONGEST_NOTED]

    def body(self) -> bytes:
        """The JSON document; also the data of the event that ends a broken stream."""
        return msgspec.json.encode(
            {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}
        )


def _clean(text: str) -> str:
    """The text, which may repeat a client's, without halves of UTF-16 pairs: no JSON can hold them."""
    return text if text.isascii() else text.encode(errors="backslashreplace").decode()


class InvalidRequest(ApiError):
    """The client must change its request."""

    status = 400
    type = "invalid_request_error"


class UnsupportedParameter(InvalidRequest):
    """The model's engine cannot do what a parameter asks, and leaving it out would not be honest."""

    code = "unsupported_parameter"


class ContextLengthExceeded(InvalidRequest):
    """The prompt (with its answer) does not fit the model."""

    code = "context_length_exceeded"

    def body(self) -> bytes:
        """As ever, with the code in the message too: LangChain knows the error by its words alone."""
        error = {"message": f"{self.message} ({self.code})", "type": self.type, "param": self.param, "code": self.code}
        return msgspec.json.encode({"error": error})


class BodyTooLarge(InvalidRequest):
    """More bytes than ``server.max_body``."""

    status = 413
    code = "request_too_large"


class RequestTimeout(InvalidRequest):
    """The client did not finish sending its request in time."""

    status = 408
    code = "request_timeout"


class MethodNotAllowed(InvalidRequest):
    """The path exists for another method."""

    status = 405
    code = "method_not_allowed"


class AuthenticationFailed(ApiError):
    """Nobody knows who asks."""

    status = 401
    type = "authentication_error"
    code = "invalid_api_key"


class PermissionDenied(ApiError):
    """Who asks may not have this."""

    status = 403
    type = "permission_error"
    code = "permission_denied"


class ModelNotFound(ApiError):
    """No such model is configured, or its engine does not have it."""

    status = 404
    type = "not_found_error"
    code = "model_not_found"


class Overloaded(ApiError):
    """Every endpoint that could serve the call is busy."""

    status = 503
    code = "engine_overloaded"


class TooManyRequests(Overloaded):
    """The engine's own limit on requests (its 429)."""

    status = 429
    type = "rate_limit_error"
    code = "rate_limit_exceeded"


class EngineUnavailable(ApiError):
    """No endpoint can be reached."""

    status = 503
    code = "engine_unavailable"


class EngineFailed(ApiError):
    """The engine's own mistake: a 5xx, an answer that makes no sense, or our credentials refused."""

    status = 502
    code = "engine_error"


class EngineTimeout(ApiError):
    """The engine took longer than a phase's timeout allows."""

    status = 504
    code = "engine_timeout"


class StreamInterrupted(ApiError):
    """A stream broke after it began; only ever seen as the last event of it."""

    status = 502
    code = "stream_interrupted"


class UsageUnavailable(ApiError):
    """What others have counted cannot be had, and the counts of this process alone would be wrong."""

    status = 503
    code = "usage_unavailable"


class GatewayFailed(ApiError):
    """A fault of the gateway itself."""

    status = 500
    code = "internal_error"
