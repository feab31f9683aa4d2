"""trtllm-serve's error bodies: a string for a body that does not validate, a flat object for everything behind it."""

from collections.abc import Sequence

from engines.simulator.schema import Issue
from engines.simulator.wire import DONE, Failure, Reply, dumps, reply


class BadRequest(Exception):
    """A request that trtllm-serve refuses; `reply` is its answer."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.body.decode())
        self.reply = reply


def flat(message: str, code: int | str = 400, status: int = 400, kind: str = "BadRequestError") -> Reply:
    """`{"object": "error", message, type, param, code}`."""
    return reply(status, {"object": "error", "message": message, "type": kind, "param": None, "code": code})


def invalid(issues: Sequence[Issue]) -> BadRequest:
    """`{"error": "<Python notation>"}`."""
    return BadRequest(reply(400, {"error": repr([issue.as_dict() for issue in issues])}))


def value_error(message: str, body: object) -> Issue:
    """What a validator of the whole body reports."""
    return Issue("value_error", ("body",), f"Value error, {message}", body, {"error": ValueError(message)})


def chat_failure(message: str) -> Failure:
    """An engine error: 400 for a whole answer, a cut connection for a stream (`chat_engine_error_*`)."""
    return Failure(flat(message), cut=True)


def completion_failure(message: str) -> Failure:
    """An engine error in a completions stream: an event, then `[DONE]` twice (`completions_midstream_error`)."""
    text = dumps(message).decode()
    failed = f'data: {{"error": {{"message": {text}, "type": "server_error", "code": null, "param": null}}}}\n\n'
    return Failure(flat(message), (failed.encode(), DONE, DONE))
