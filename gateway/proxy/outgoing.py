"""What an attempt sends: the request as the chosen engine wants it."""

from dataclasses import replace
from typing import Final

import msgspec

from engines.policy import UNCHANGED, ParameterRefused, Prepared
from engines.profile import Operation
from engines.splitters import batches
from gateway.balance.endpoint import Endpoint
from gateway.balance.lease import Target
from gateway.errors import ApiError, InvalidRequest, UnsupportedParameter
from gateway.proxy.links import EngineLink, serves
from gateway.proxy.plane import TASKS, Asked
from gateway.proxy.tooling import UNTOOLED
from gateway.proxy.verdicts import no_such_path
from gateway.wire.embeddings import TOKEN_INPUT_REFUSED, is_token_input
from gateway.wire.openai import Call
from gateway.wire.shape.usage import asking_usage
from gateway.wire.tools import Tooled

_CHAT: Final = Operation.CHAT
"""As a plain name: looking a member up costs more than the comparison."""

RANKED: Final = frozenset({Operation.CHAT, Operation.COMPLETIONS})
"""Operations whose requests have a priority at vLLM."""
_WRONG_TASK: Final = {"embedding": "is not an embedding model", "rerank": "is not a rerank model"}
_INSTEAD: Final = {
    "embedding": "is an embedding model; ask for it at /v1/embeddings",
    "rerank": "is a rerank model; ask for it at /v1/rerank or /v1/score",
}


class Outgoing(msgspec.Struct, eq=False):
    """A body ready for one target, and what its profile changed."""

    target: Target
    body: bytes
    prepared: Prepared
    tooled: Tooled | None = None
    """What was done to a chat call for its tools."""


def check_asked(call: Call, asked: Asked) -> None:
    """Refuses what no target of the model could serve. Raises ApiError."""
    operation = call.operation
    wanted = TASKS.get(operation, asked.task)
    if asked.task != wanted:
        raise InvalidRequest(f"'{call.model}' {_WRONG_TASK.get(wanted) or _INSTEAD[asked.task]}.", param="model")
    if not asked.served(operation):
        raise no_such_path(call.model, call.operation)
    by_text = operation is Operation.EMBEDDINGS and asked.token_inputs == "reject"
    if by_text and is_token_input(call.members.get("input")):
        raise InvalidRequest(TOKEN_INPUT_REFUSED, param="input", code="unsupported_parameter")


def outgoing(call: Call, asked: Asked, link: EngineLink, target: Target) -> Outgoing:
    """Makes the body for a target. Raises ApiError when its engine cannot serve the call as asked."""
    rank = None if call.rank is None or not link.ranks else _rank(call, call.rank)
    if call.operation is _CHAT and target.model == call.model and rank is None:
        tooling = asked.destinations[target.engine.name].tooling
        if tooling.keeps_ids and link.profile.tables[_CHAT].quiet.issuperset(call.members):
            return Outgoing(target, call.body, UNCHANGED, UNTOOLED)  # nothing in it that any rule looks at
    if not serves(link, call.operation):
        raise no_such_path(call.model, call.operation)
    tooled = None
    try:
        if call.operation is Operation.CHAT:
            tooling = asked.destinations[target.engine.name].tooling
            tooled = tooling.prepare(call.members)
            prepared = _prepared(tooled, call, asked, link)
        else:
            prepared = link.profile.prepare(call.operation, call.members, asked.unknown)
            most = link.settings.max_batch
            if most is not None and call.operation is Operation.EMBEDDINGS and prepared.split is None:
                prepared = replace(prepared, split=batches("input", call.members, most))
    except ParameterRefused as refused:
        raise _refusal(refused) from None
    members = prepared.members
    if call.stream and link.profile.answers.hides_length:
        members = asking_usage(call.members if members is None else members)
    if rank is not None:
        members = (call.members if members is None else members) | {"priority": msgspec.Raw(b"%d" % rank)}
    if members is None and target.model == call.model:
        return Outgoing(target, call.body, prepared, tooled)
    renamed = (call.members if members is None else members) | {"model": msgspec.Raw(msgspec.json.encode(target.model))}
    return Outgoing(target, msgspec.json.encode(renamed), prepared, tooled)


def _rank(call: Call, rank: int) -> int | None:
    """What the engine has to be told: it takes none for 0, and a client's own wish does not count beside its key."""
    return rank if call.operation in RANKED and (rank != 0 or "priority" in call.members) else None


def unfit(call: Call, asked: Asked) -> tuple[Endpoint, ...]:
    """The endpoints whose engine refuses the call as it is asked. Raises ApiError, a refusal, if every engine does."""
    refusing, refusal = [], None
    for target in asked.route.targets:
        try:
            outgoing(call, asked, asked.destinations[target.engine.name].link, target)
        except ApiError as error:
            refusing.append(target)
            refusal = refusal or error
    if refusal is not None and len(refusing) == len(asked.route.targets):
        raise refusal
    return tuple(endpoint for target in refusing for endpoint in target.engine.endpoints)


def asking_why(sent: Outgoing, call: Call) -> Outgoing:
    """The same request for one token in one piece, so that an engine which cuts streams can say what is wrong with it.

    Wishes that could themselves be wrong with so short an answer are left out.
    """
    members = dict(sent.prepared.members or call.members)
    for name in ("stream", "stream_options", "max_completion_tokens", "min_tokens"):
        members.pop(name, None)
    members |= {"model": msgspec.Raw(msgspec.json.encode(sent.target.model)), "max_tokens": msgspec.Raw(b"1")}
    return Outgoing(sent.target, msgspec.json.encode(members), sent.prepared, sent.tooled)


def _prepared(tooled: Tooled, call: Call, asked: Asked, link: EngineLink) -> Prepared:
    """What the profile makes of a chat call, after what was done for its tools."""
    if tooled.members is None:
        return link.profile.prepare(call.operation, call.members, asked.unknown)
    prepared = link.profile.prepare(call.operation, tooled.members, asked.unknown)
    return replace(
        prepared,
        members=tooled.members if prepared.members is None else prepared.members,
        dropped=(*tooled.dropped, *prepared.dropped),
        translated=(*tooled.translated, *prepared.translated),
    )


def _refusal(refused: ParameterRefused) -> ApiError:
    kind = UnsupportedParameter if refused.code == "unsupported_parameter" else InvalidRequest
    return kind(refused.message, param=refused.param, code=refused.code)
