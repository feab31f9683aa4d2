"""A chat request that vLLM has accepted."""

from dataclasses import dataclass

from engines.simulator.models import SimulatedModel
from engines.simulator.schema import Body


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat request after all checks."""

    model: SimulatedModel
    body: Body
    choice: str
    """`auto`, `none`, `required`, `named`, or "" without tools."""
    prompt_tokens: int
    prompt_ids: tuple[int, ...] | None
    thinking: bool
    """Whether the reasoning parser runs."""

    @property
    def n(self) -> int:
        """Number of choices."""
        return int(self.body.get("n") or 1)

    @property
    def calls_tools(self) -> bool:
        """Whether the tool parser runs."""
        return self.choice not in ("", "none")
