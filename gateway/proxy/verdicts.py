"""From what an engine said or did to what the client is told, and what the attempt counts as.

Nothing of the inside reaches a client: messages are OpenAI's or the profile's cleaned ones (CONTRACT §4).
"""

import re
from typing import Final, assert_never

from engines.faults import Fault, FaultKind
from engines.profile import Operation
from gateway.balance.outcome import Broken, Outcome, Overloaded, Phase, Rejected
from gateway.balance.route import Unavailable
from gateway.errors import (
    RETRY_LATER,
    ApiError,
    ContextLengthExceeded,
    EngineFailed,
    EngineTimeout,
    EngineUnavailable,
    InvalidRequest,
    ModelNotFound,
    StreamInterrupted,
    TooManyRequests,
)
from gateway.errors import Overloaded as OverloadedError
from gateway.proxy.paths import PATHS

_BAD_GATEWAY: Final = "The engine could not serve this request."


def retry_after_seconds(value: bytes) -> float | None:
    """The number of seconds in an engine's ``retry-after``; dates are not taken, no engine sends them."""
    try:
        seconds = float(value)
    except ValueError:
        return None
    return seconds if 0 <= seconds < 86_400 else None


def outcome_of(fault: Fault, retry_after: float | None) -> Outcome:
    """What an attempt that ended in this fault counts as."""
    match fault.kind:
        case FaultKind.OVERLOADED:
            return Overloaded(retry_after)
        case FaultKind.ENGINE_ERROR | FaultKind.UNAUTHORIZED:
            return Broken(fault.status)
        case FaultKind.INVALID_REQUEST | FaultKind.CONTEXT_LENGTH | FaultKind.MODEL_NOT_FOUND | FaultKind.NO_SUCH_PATH:
            return Rejected(fault.status)
        case _:
            assert_never(fault.kind)


def no_such_path(model: str, operation: Operation) -> InvalidRequest:
    """The refusal of an operation that the model's engine does not have."""
    return InvalidRequest(f"The engine that serves '{model}' has no {PATHS[operation]} endpoint.", param="model")


def error_of(
    fault: Fault, model: str, operation: Operation, retry_after: float | None, theirs: str | None = None
) -> ApiError:
    """What the client is told about a fault. ``theirs``: what the engine calls the model that the client asked for."""
    match fault.kind:
        case FaultKind.INVALID_REQUEST:
            return InvalidRequest(_renamed(fault.message, theirs, model), param=fault.param)
        case FaultKind.CONTEXT_LENGTH:
            return ContextLengthExceeded(_renamed(fault.message, theirs, model), param=fault.param)
        case FaultKind.MODEL_NOT_FOUND:
            return ModelNotFound(f"The model '{model}' is not available on its engine.", param="model")
        case FaultKind.NO_SUCH_PATH:
            return no_such_path(model, operation)
        case FaultKind.OVERLOADED:
            kind = TooManyRequests if fault.status == 429 else OverloadedError
            return kind(
                "The engine is busy. Please try again later.", retry_after=retry_after or RETRY_LATER, should_retry=True
            )
        case FaultKind.UNAUTHORIZED:
            return EngineFailed("The engine refused the gateway's credentials.", should_retry=False)
        case FaultKind.ENGINE_ERROR:
            return EngineFailed(_renamed(fault.message, theirs, model) or _BAD_GATEWAY)
        case _:
            assert_never(fault.kind)


def _renamed(message: str, theirs: str | None, ours: str) -> str:
    """An engine's words with the name that the client knows. A name that is a word is only one where it is quoted."""
    if not theirs or theirs == ours or theirs not in message:
        return message
    name = re.escape(theirs)
    pattern = rf"(?<=['\"`]){name}(?=['\"`])" if theirs.isalpha() else rf"(?<![\w./-]){name}(?![\w/-]|\.\w)"
    return re.sub(pattern, lambda _: ours, message)


def no_such_model(name: str) -> ModelNotFound:
    """What the client is told when it asks for a model that nobody serves."""
    return ModelNotFound(
        f"The model '{name[:200]}' does not exist. GET /v1/models lists what can be asked for.", param="model"
    )


def unavailable(nobody: Unavailable, model: str) -> ApiError:
    """What the client is told when no endpoint can take its request."""
    if nobody.reason == "all_busy":
        return OverloadedError(
            f"Every replica that serves '{model}' is at its limit. Please try again later.",
            retry_after=nobody.retry_after,
            should_retry=True,
        )
    return EngineUnavailable(
        f"No engine that serves '{model}' can be reached.", retry_after=nobody.retry_after, should_retry=True
    )


def shed(model: str, retry_after: float, *, own_limit: bool) -> ApiError:
    """What the client is told when there was no room for its request; ``own_limit``: the model's, not its replicas'."""
    kind = TooManyRequests if own_limit else OverloadedError
    what = f"'{model}' already serves as many requests as it may" if own_limit else f"'{model}' has no free replica"
    return kind(f"{what}. Please try again later.", retry_after=retry_after, should_retry=True)


def unreachable(model: str) -> ApiError:
    """What the client is told when the last endpoint left did not take a connection."""
    return EngineUnavailable(
        f"No engine that serves '{model}' can be reached.", retry_after=RETRY_LATER, should_retry=True
    )


def timed_out(phase: Phase, seconds: float) -> ApiError:
    """What the client is told when an engine was too slow."""
    waited = f"{seconds:g} s"
    match phase:
        case Phase.CONNECT:
            return EngineUnavailable(
                f"The engine did not take the connection within {waited}.", retry_after=RETRY_LATER
            )
        case Phase.FIRST_TOKEN:
            return EngineTimeout(f"The engine gave no answer within {waited}.")
        case Phase.IDLE:
            return EngineTimeout(f"The engine fell silent for {waited} in the middle of its answer.")
        case Phase.TOTAL:
            return EngineTimeout(f"The answer was not complete within {waited}.")
        case _:
            assert_never(phase)


def going_away() -> ApiError:
    """What the client is told when the gateway stops before its answer is complete."""
    return EngineUnavailable(
        "The gateway is shutting down.", code="shutting_down", retry_after=RETRY_LATER, should_retry=True
    )


def interrupted() -> ApiError:
    """What the client is told when a stream broke."""
    return StreamInterrupted("The engine's answer broke off before it was complete.")
