"""What is noted of one request."""

from dataclasses import dataclass, field
from typing import Final

OK: Final = "ok"
REFUSED: Final = "refused"
"""No connection."""
CUT: Final = "cut"
"""The connection ended before the answer did."""
ERROR_EVENT: Final = "error event"
UNFINISHED: Final = "unfinished"
"""Still open when the scenario's time was over."""


@dataclass(slots=True)
class Sample:
    """One request. All moments are in seconds of one clock, and come from the arrival of bytes.

    Latency counts from `due`, not from `sent`: a load generator or a system that falls behind cannot hide it.
    """

    shape: str
    due: float
    sent: float = 0.0
    first: float | None = None
    """When the first event of a stream arrived; None for a plain answer."""
    last: float | None = None
    """When the answer was complete."""
    events: int = 0
    gaps: list[float] = field(default_factory=list)
    """Seconds between two events of a stream; events that arrive together are 0 apart."""
    received: int = 0
    """Bytes of the body."""
    outcome: str = UNFINISHED
    """`OK`, an HTTP status such as "503", or one of the words above."""
