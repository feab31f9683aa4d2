"""What an attempt sends: the request as the chosen engine wants it."""

import msgspec

from engines.policy import ParameterRefused, Prepared
from engines.profile import Operation
from gateway.balance.lease import Target
from gateway.errors import ApiError, InvalidRequest, UnsupportedParameter
from gateway.proxy.plane import Asked, EngineLink, serves
from gateway.wire.embeddings import TOKEN_INPUT_REFUSED, is_token_input
from gateway.wire.openai import Call
from gateway.wire.shape.usage import asking_usage


class Outgoing(msgspec.Struct, eq=False):
    """A body ready for one target, and what its profile changed."""

    target: Target
    body: bytes
    prepared: Prepared


def check_asked(call: Call, asked: Asked) -> None:
    """Refuses what no target of the model could serve. Raises ApiError."""
    if call.operation is not Operation.EMBEDDINGS:
        if asked.task == "embedding":
            raise InvalidRequest(f"'{call.model}' is an embedding model; ask for it at /v1/embeddings.", param="model")
        return
    if asked.task != "embedding":
        raise InvalidRequest(f"'{call.model}' is not an embedding model.", param="model")
    if asked.token_inputs == "reject" and is_token_input(call.members.get("input")):
        raise InvalidRequest(TOKEN_INPUT_REFUSED, param="input", code="unsupported_parameter")


def outgoing(call: Call, asked: Asked, link: EngineLink, target: Target) -> Outgoing:
    """Makes the body for a target. Raises ApiError when its engine cannot serve the call as asked."""
    if not serves(link, call.operation):
        raise InvalidRequest(
            f"The engine that serves '{call.model}' has no {call.operation.value} endpoint.", param="model"
        )
    try:
        prepared = link.profile.prepare(call.operation, call.members, asked.unknown)
    except ParameterRefused as refused:
        raise _refusal(refused) from None
    members = prepared.members
    if call.stream and link.profile.answers.hides_length:
        members = asking_usage(call.members if members is None else members)
    if members is None and target.model == call.model:
        return Outgoing(target, call.body, prepared)
    renamed = (call.members if members is None else members) | {"model": msgspec.Raw(msgspec.json.encode(target.model))}
    return Outgoing(target, msgspec.json.encode(renamed), prepared)


def _refusal(refused: ParameterRefused) -> ApiError:
    kind = UnsupportedParameter if refused.code == "unsupported_parameter" else InvalidRequest
    return kind(refused.message, param=refused.param, code=refused.code)
