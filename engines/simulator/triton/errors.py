"""Triton's three error bodies: a list of details, a detail string, and the middleware's OpenAI object."""

from collections.abc import Sequence

from engines.simulator.schema import Issue
from engines.simulator.wire import Failure, Reply, reply


class BadRequest(Exception):
    """A request that Triton refuses; `reply` is its answer."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.reply = detail(status, message)


class Invalid(Exception):
    """A body that does not validate; `reply` is a 422."""

    def __init__(self, issues: Sequence[Issue]) -> None:
        super().__init__(issues[0].msg)
        self.reply = reply(422, {"detail": [issue.as_dict() for issue in issues]})


def detail(status: int, message: str) -> Reply:
    """`{"detail": "text"}`."""
    return reply(status, {"detail": message})


def middleware(status: int, message: str, kind: str, code: str) -> Reply:
    """`{"error": {message, type, code}}`, without `param`."""
    return reply(status, {"error": {"message": message, "type": kind, "code": code}})


def engine_error(model: str, message: str) -> Reply:
    """500 with a Python tuple as its text, which shows what the inside looks like."""
    shown = repr(message)
    inner = (
        f"InferenceResponse(model={{'name': '{model}', 'version': 1, 'state': None}}, request_id='', parameters={{}}"
    )
    rest = "outputs={}, error=InternalError(...), classification_label=None, final=True"
    return detail(500, f"({shown}, {inner}, {rest}))")


def failure(model: str, message: str, backend: str) -> Failure:
    """An engine error: 500 for a whole answer, a cut connection for a stream (`chat_engine_error_*`)."""
    text = f"Error generating stream: {message}" if backend == "vllm" else message
    return Failure(engine_error(model, text), cut=True)
