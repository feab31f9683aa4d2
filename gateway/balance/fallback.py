"""Which other model may stand in when a route cannot serve a request. The shell names it in the answer's headers."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from gateway.balance.outcome import (
    Broken,
    ClientGone,
    Outcome,
    Overloaded,
    Phase,
    Refused,
    Rejected,
    Served,
    Stale,
    TimedOut,
    Truncated,
)
from gateway.balance.route import Unavailable


class Cause(StrEnum):
    """Why a route could not serve."""

    OVERLOAD = "overload"
    ENGINE_LOSS = "engine_loss"
    CONTEXT_LENGTH = "context_length"


@dataclass(frozen=True, slots=True)
class Fallbacks:
    """Models to try in this order, and for which causes; a longer context elsewhere is opt-in."""

    models: tuple[str, ...] = ()
    on: frozenset[Cause] = frozenset({Cause.OVERLOAD, Cause.ENGINE_LOSS})


def cause_of(end: Outcome | Unavailable, *, context_too_long: bool = False) -> Cause | None:
    """Why the route's last attempt (or its lack of endpoints) calls for another model; None if it does not.

    `context_too_long` says of a `Rejected` that the engine found the prompt too long for the model.
    """
    match end:
        case Unavailable(reason="all_busy") | Overloaded():
            return Cause.OVERLOAD
        case Unavailable() | Refused() | Stale() | Broken():
            return Cause.ENGINE_LOSS
        case TimedOut(phase=phase, by_client=by_client):
            return Cause.ENGINE_LOSS if phase is not Phase.TOTAL and not by_client else None
        case Rejected():
            return Cause.CONTEXT_LENGTH if context_too_long else None
        case Served() | Truncated() | ClientGone():
            return None
        case _:
            assert_never(end)


def next_model(
    fallbacks: Fallbacks, cause: Cause | None, visited: Collection[str], usable: Sequence[str] | None = None
) -> str | None:
    """The first fallback that this request has not visited yet, if the cause allows one at all.

    `usable` restricts to those that can serve this kind of request (None: all). Invariant: with every model that was
    asked in `visited`, models that name each other as fallbacks are asked once each.
    """
    if cause is None or cause not in fallbacks.on:
        return None
    for model in fallbacks.models:
        if model not in visited and (usable is None or model in usable):
            return model
    return None
