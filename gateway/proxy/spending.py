"""What a request has cost in tokens, as far as anybody knows."""

from gateway.proxy.attempt import Attempt
from gateway.usage import Spent
from gateway.wire.estimate import prompt_tokens


def cost_of(attempt: Attempt, *, worked: bool) -> Spent:
    """What an attempt has cost.

    ``worked``: the engine was at work when nobody waited any more; else an attempt without an answer costs nothing.
    """
    relay = attempt.relay
    usage = attempt.usage if relay is None else relay.usage
    if usage is not None:
        return Spent(usage.prompt_tokens, usage.completion_tokens)
    if relay is not None and relay.committed and relay.events:  # most engines send one token in each
        return Spent(prompt_tokens(len(attempt.outgoing.body)), relay.events, estimated=True)
    if attempt.estimate is not None:
        return Spent(*attempt.estimate, estimated=True)
    if worked:
        return Spent(prompt_tokens(len(attempt.outgoing.body)), 0, estimated=True)
    return Spent()
