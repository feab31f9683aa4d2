"""The one small request that warms an endpoint up before it is given traffic (`engines.*.health.warm_up`).

An engine's first request after its start may take many times as long as the next: graphs are captured, kernels are
compiled, adapters loaded.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from engines.probes import Answer
from engines.profile import Operation
from gateway.background.fetch import Fetch, NoAnswer
from gateway.balance.endpoint import Endpoint
from gateway.proxy.links import EngineLink
from gateway.proxy.plane import Plane

_BODIES: Final[Mapping[str, tuple[Operation, Mapping[str, object]]]] = {
    "chat": (Operation.CHAT, {"messages": [{"role": "user", "content": "ping"}], "max_tokens": 1}),
    "embedding": (Operation.EMBEDDINGS, {"input": "ping"}),
    "rerank": (Operation.RERANK, {"query": "ping", "documents": ["ping"]}),
}


@dataclass(frozen=True, slots=True)
class Question:
    """A request of one token, and the engine's path for it."""

    path: str
    body: bytes


def question(plane: Plane, name: str, link: EngineLink) -> Question | None:
    """What to ask an engine; None if no model is configured for it that it has a path for."""
    for asked in plane.asked.values():
        operation, members = _BODIES[asked.task]
        path = link.profile.paths.get(operation)
        target = next((one for one in asked.route.targets if one.engine.name == name), None)
        if path is not None and target is not None:
            return Question(path.decode(), msgspec.json.encode({"model": target.model, **members}))
    return None


async def warm_up(plane: Plane, name: str, link: EngineLink, endpoint: Endpoint, fetch: Fetch) -> str | None:
    """Asks, and waits as long as a client would for a first token. None: it is warm; else why it is not, in words.

    A refusal (4xx) is an answer: the engine works, and who asks for what it does not have is told so anyway.
    """
    asked = question(plane, name, link)
    if asked is None:
        return None
    credentials = plane.settings.engines[name].credentials
    answer = await fetch.post(endpoint, asked.path, credentials, asked.body, link.timeouts.first_token)
    match answer:
        case NoAnswer(reason=reason):
            return f"its warm-up request failed: {reason}"
        case Answer(status=status) if status >= 500:
            return f"its warm-up request failed: status {status}"
        case Answer():
            return None
