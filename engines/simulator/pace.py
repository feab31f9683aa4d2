"""How fast a simulated engine answers, and how it misbehaves when a test asks for it. Both are plain values."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """The speed of a simulated engine. The default answers at once.

    Times are seconds. `max_running` is how many requests generate at once; others wait in arrival order.
    `max_requests` bounds running and waiting ones together, as vLLM's `--max-num-queued-reqs` does (recording
    `queue_full`): above it vLLM answers 503. The other two engines have no recorded refusal, so they only queue.
    """

    first_token: float = 0.0
    """Before the first token, whatever the prompt's length."""
    prefill: float = 0.0
    """Added to `first_token` for each token of the prompt."""
    inter_token: float = 0.0
    """Between two tokens while the request runs alone."""
    batch_slowdown: float = 0.0
    """Share by which each further running request makes `inter_token` longer."""
    max_running: int | None = None
    max_requests: int | None = None
    kv_capacity: int = 65_536
    """Tokens that fit the KV cache; only the KV use metric depends on it."""

    @property
    def instant(self) -> bool:
        """True when no request ever sleeps."""
        return not (self.first_token or self.prefill or self.inter_token)

    def before_first(self, prompt_tokens: int) -> float:
        """Seconds between admission and the first token."""
        return self.first_token + self.prefill * prompt_tokens

    def between(self, running: int) -> float:
        """Seconds between two tokens while `running` requests share the engine."""
        return self.inter_token * (1.0 + self.batch_slowdown * max(0, running - 1))


@dataclass(frozen=True, slots=True)
class Faults:
    """Scripted misbehaviour of generating requests and health probes. Everything is off by default.

    Counts are of stream events; for an answer that is not streamed every count means "before the answer".
    When several are set, the first in the order of the fields below wins.
    """

    every: int = 1
    """The faults hit each n-th generating request; 1 is all of them."""
    never_answer: bool = False
    """The request is read and nothing is ever sent."""
    status: int | None = None
    """Answer with this status and the engine's own error body, before anything is generated."""
    engine_error_after: int | None = None
    """The engine fails after this many events; the client sees what that engine's frontend makes of it."""
    die_after: int | None = None
    """The connection is closed after this many events, with no last chunk; 0 is before the first event."""
    reset: bool = False
    """`die_after` closes with RST, as a killed host or a middle box does, and not with FIN."""
    silent_after: int | None = None
    """Nothing more comes after this many events, and the connection stays open (vLLM: `wire_sigterm_stream`)."""
    unhealthy: bool = False
    """The health path answers as when the engine behind the frontend is dead; generation is not affected."""

    def hits(self, number: int) -> bool:
        """Whether the generating request with this number (from 1) is hit."""
        return number % self.every == 0


NO_FAULTS = Faults()
