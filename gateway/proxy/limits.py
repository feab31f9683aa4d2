"""How long the phases of a request may take, and what its client may do about it: only lower them."""

from dataclasses import dataclass
from math import inf
from typing import Final

from gateway.balance.outcome import Phase
from gateway.errors import InvalidRequest
from gateway.settings.units import parse_duration

TIMEOUT: Final = b"x-turnout-timeout"
"""The client's limit for the whole request: seconds, or a duration such as 500ms."""

READ_TIMEOUT: Final = b"x-stainless-read-timeout"
"""What OpenAI's SDKs say by themselves: the seconds after which their client gives up when it hears nothing."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a client asks for, in seconds. ``total`` is its limit, ``silence`` a hint; ``malformed``: not readable."""

    total: float = inf
    silence: float = inf
    malformed: bool = False


NO_BOUNDS: Final = Bounds()


def read_bound(bounds: Bounds | None, name: bytes, value: bytes) -> Bounds | None:
    """The bounds with those of one more header. A hint that is no number of seconds is no hint."""
    known = bounds or NO_BOUNDS
    try:
        seconds = parse_duration(value.decode("latin-1"))
    except ValueError:
        seconds = 0.0
    if name == TIMEOUT:
        return Bounds(seconds, known.silence, malformed=seconds <= 0)
    return Bounds(known.total, seconds, malformed=known.malformed) if seconds > 0 else bounds


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds; see `gateway.settings.tree.Timeouts`."""

    first_token: float
    idle: float
    total: float
    whole: bool = True
    """Whether ``first_token`` also holds for answers that are not streamed: their first byte comes with their last."""

    def of(self, phase: Phase) -> float:
        """The limit of one phase; connecting has one of its own, at the endpoint's connections."""
        match phase:
            case Phase.FIRST_TOKEN | Phase.CONNECT:
                return self.first_token
            case Phase.IDLE:
                return self.idle
            case Phase.TOTAL:
                return self.total

    def lowered(self, bounds: Bounds, *, hint: bool = True) -> "Limits":
        """The limits as the client wants them; ``hint``: it hears nothing while the engine is silent.

        Raises InvalidRequest when its limit cannot be understood.
        """
        if bounds.malformed:
            raise InvalidRequest(
                f"'{TIMEOUT.decode()}' must be a duration above 0, such as 30 or 500ms.", code="invalid_header"
            )
        silence = bounds.silence if hint else inf
        first_token, total = min(self.first_token, silence), min(self.total, bounds.total)
        return Limits(first_token, min(self.idle, silence), total, self.whole)
