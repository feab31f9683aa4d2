"""Who may call: the section `keys`."""

from pydantic import Field

from gateway.settings.access import Instant, KeyHash, Number
from gateway.settings.section import Section
from gateway.settings.values import Name


class Key(Section):
    """A key that a client may show. The file has its hash only: `turnout keys new NAME` makes both."""

    name: Name = Field(description="what logs, metrics and usage call it", examples=["team-a"])
    hash: KeyHash = Field(description="the SHA-256 of the key", examples=[f'"sha256:{"0" * 64}"'])
    models: tuple[Name, ...] | None = Field(
        default=None, description="models and aliases that it may ask for; default: all", examples=["[chat]"]
    )
    priority: Number = Field(default=0.0, description="who waits for room goes by it, the highest first")
    expires: Instant | None = Field(
        default=None,
        description="from when on it is refused: a date, or a time with its zone",
        examples=['"2027-01-31"'],
    )
    disabled: bool = Field(default=False, description="it is refused for now", examples=["false"])
    tags: tuple[Name, ...] = Field(default=(), description="words of yours, shown with its usage", examples=["[batch]"])
