"""The seam of the policies: a frozen dataclass is the configuration, its picker is the running state."""

from collections.abc import Callable, Sequence
from typing import ClassVar, Protocol, TypeAlias

from gateway.balance.endpoint import Endpoint

Rng: TypeAlias = Callable[[], float]
"""Uniform in [0, 1), as `random.random`."""

Pick: TypeAlias = Callable[[Sequence[Endpoint], bytes | None, Rng], Endpoint]
"""Choose from a non-empty sequence in which every endpoint may take one more request. It never keeps the sequence."""


class Policy(Protocol):
    """A rule for choosing among endpoints of one engine."""

    sticky_target: ClassVar[bool]
    """Whether a key must also stay with one target of the route (chosen by hash), or targets follow their weights."""

    uses_load: ClassVar[bool]
    """Whether it looks at `Endpoint.extra`, so that engines must be asked for their load."""

    def picker(self) -> Pick:
        """Return a new chooser with its own state, for one target of one route."""
        ...
