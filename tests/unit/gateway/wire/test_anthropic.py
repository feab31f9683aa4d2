"""Errors in Anthropic's shape."""

import json

import pytest
from anthropic.types.shared import error_object

from gateway import errors
from gateway.wire.anthropic import error_body, error_event, error_type


def described(error: errors.ApiError) -> tuple[str, str]:
    document = json.loads(error_body(error, b"req-1"))
    assert document["type"] == "error"
    assert document["request_id"] == "req-1"
    return document["error"]["type"], document["error"]["message"]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (errors.InvalidRequest("x"), "invalid_request_error"),
        (errors.UnsupportedParameter("x", param="tools"), "invalid_request_error"),
        (errors.ModelNotFound("x"), "not_found_error"),
        (errors.MethodNotAllowed("x"), "invalid_request_error"),
        (errors.RequestTimeout("x"), "invalid_request_error"),
        (errors.BodyTooLarge("x"), "request_too_large"),
        (errors.TooManyRequests("x"), "rate_limit_error"),
        (errors.Overloaded("x"), "overloaded_error"),
        (errors.EngineUnavailable("x"), "overloaded_error"),
        (errors.EngineTimeout("x"), "timeout_error"),
        (errors.EngineFailed("x"), "api_error"),
        (errors.StreamInterrupted("x"), "api_error"),
        (errors.GatewayFailed("x"), "api_error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_each_error_has_anthropics_type(error: errors.ApiError, expected: str) -> None:
    assert described(error) == (expected, "x")


@pytest.mark.parametrize(
    ("status", "expected"), [(401, "authentication_error"), (403, "permission_error"), (529, "overloaded_error")]
)
def test_types_of_statuses_that_others_give(status: int, expected: str) -> None:
    assert error_type(status) == expected


def test_types_are_those_that_the_sdk_knows() -> None:
    """All but one, which Anthropic's documentation has."""
    known = str(error_object.ErrorObject)
    for status in (400, 401, 403, 404, 429, 500, 503, 504):
        name = error_type(status).removesuffix("_error").title().replace("_", "")
        assert name.lower() in known.lower().replace("_", ""), name


def test_a_prompt_that_is_too_long_says_so_as_anthropic_does() -> None:
    """Claude Code compacts the conversation when the message begins like this."""
    assert described(errors.ContextLengthExceeded("At most 10 tokens."))[1] == "prompt is too long: At most 10 tokens."


def test_an_event_needs_no_id() -> None:
    """The headers of its stream have it."""
    lines = error_event(errors.EngineFailed("x")).split(b"\n")
    assert lines[0] == b"event: error"
    assert json.loads(lines[1].removeprefix(b"data: ")) == {
        "type": "error",
        "error": {"type": "api_error", "message": "x"},
    }
    assert lines[2:] == [b"", b""]
