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
    """Seconds; see `gateway.settings.engines.Timeouts`."""

    first_token: float
    idle: float
    total: float
    whole: bool = True
    """Whether ``first_token`` also holds for answers that are not streamed: their first byte comes with their last."""
    by_client: frozenset[Phase] = frozenset()
    """The limits that are the client's own, and so nobody's fault."""

    def of(self, phase: Phase) -> float:
        """The limit of one phase; connecting has one of its own, at the endpoint's connections."""
        match phase:
            case Phase.FIRST_TOKEN | Phase.CONNECT:
                return self.first_token
            case Phase.IDLE:
                return self.idle
            case Phase.TOTAL:
                return self.total

    def lowered(self, bounds: Bounds, *, streamed: bool, beats: bool) -> "Limits":
        """The limits as the client wants them. ``beats``: it gets signs of life, so that silence does not matter to it.

        Raises InvalidRequest when its own limit cannot be understood.
        """
        if bounds.malformed:
            raise InvalidRequest(
                f"'{TIMEOUT.decode()}' must be a duration above 0, such as 30 or 500ms.", code="invalid_header"
            )
        silence = inf if beats else bounds.silence
        held = self.first_token if self.whole or streamed else inf
        lower = {
            Phase.FIRST_TOKEN: silence < held,
            Phase.IDLE: silence < self.idle,
            Phase.TOTAL: bounds.total < self.total,
        }
        return Limits(
            min(held, silence) if silence < inf else self.first_token,
            min(self.idle, silence),
            min(self.total, bounds.total),
            self.whole or silence < inf,
            frozenset(phase for phase, is_lower in lower.items() if is_lower),
        )
