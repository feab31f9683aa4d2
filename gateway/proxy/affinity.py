"""What keeps a request with others under an affinity policy, taken from the request itself."""

from collections.abc import Callable
from typing import Final, TypeAlias

from gateway.balance.policies import POLICIES
from gateway.balance.policies.policy import Policy
from gateway.balance.policies.prefix_affinity import LONGEST, PrefixAffinity
from gateway.proxy.downstream import Inbound
from gateway.settings.models import Model as ModelSettings
from gateway.wire.openai import Call

Key: TypeAlias = Callable[[Call, Inbound], bytes | None]

PROMPTS: Final = ("messages", "prompt", "input")
"""Members that hold what an engine's cache begins with."""


def policy_of(settings: ModelSettings) -> Policy:
    """A model's policy."""
    if settings.policy == "prefix_affinity":
        return PrefixAffinity(settings.affinity.factor)
    return POLICIES[settings.policy]()


def key_of(settings: ModelSettings) -> Key | None:
    """What finds the key of a request for the model; None for policies that want none."""
    match settings.policy:
        case "prefix_affinity":
            return prompt_key
        case "session_affinity":
            return session_key(settings)
        case _:
            return None


def session_header(settings: ModelSettings) -> bytes | None:
    """The header that a model's requests are read for."""
    wanted = settings.policy == "session_affinity" and "header" in settings.affinity.by
    return settings.affinity.header.encode() if wanted else None


def prompt_key(call: Call, _inbound: Inbound) -> bytes | None:
    """How the prompt begins, as JSON."""
    for name in PROMPTS:
        prompt = call.members.get(name)
        if prompt is not None:
            return bytes(memoryview(prompt)[:LONGEST])
    return None


def session_key(settings: ModelSettings) -> Key:
    """The first of the places in `affinity.by` that has something; only a request's own members count."""
    places = settings.affinity.by
    header = settings.affinity.header.encode()

    def key(call: Call, inbound: Inbound) -> bytes | None:
        for place in places:
            if place == "header":
                found = None if inbound.sessions is None else inbound.sessions.get(header)
            else:
                found = _text(call, place)
            if found:
                return found
        return None

    return key


def _text(call: Call, name: str) -> bytes | None:
    """A member that is a string, as it is spelled; None if it is empty or anything else."""
    member = call.members.get(name)
    spelled = b"" if member is None else bytes(member)
    return spelled if spelled[:1] == b'"' and len(spelled) > 2 else None
