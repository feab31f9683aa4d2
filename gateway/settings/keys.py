"""Who may call, how much of it, and where the counts are kept: the sections `keys`, `limits` and `state`."""

from typing import Literal

from pydantic import Field

from gateway.settings.access import Instant, KeyHash, KeyPrefix, Number, PositiveCount, RedisUrl
from gateway.settings.section import Section
from gateway.settings.values import Name, PositiveDuration, PositiveNumber, Secret


class LimitSet(Section):
    """How much may be asked for. What is left out is not limited."""

    rpm: PositiveCount | None = Field(default=None, description="requests per minute", examples=["600"])
    tpm: PositiveCount | None = Field(
        default=None, description="tokens per minute, those of prompts and of answers", examples=["200k"]
    )
    parallel: PositiveNumber | None = Field(default=None, description="requests at once", examples=["32"])
    tokens_per_day: PositiveCount | None = Field(
        default=None, description="tokens from midnight to midnight, UTC", examples=["5M"]
    )
    tokens_per_month: PositiveCount | None = Field(
        default=None, description="tokens in a calendar month, UTC", examples=["100M"]
    )
    burst: PositiveDuration | None = Field(
        default=None,
        description="how much of rpm and tpm may be used at once, as seconds' worth; default: 60s, a whole minute's",
        examples=["10s"],
    )


class Limits(LimitSet):
    """What holds for each key that does not say otherwise (for all callers together where there are no keys)."""

    overall: LimitSet = LimitSet()


class Key(Section):
    """A key that a client may show. The file has its hash only: `turnout keys new NAME` makes both."""

    name: Name = Field(description="what logs, metrics and usage call it", examples=["team-a"])
    hash: KeyHash = Field(description="the SHA-256 of the key", examples=[f'"sha256:{"0" * 64}"'])
    models: tuple[Name, ...] | None = Field(
        default=None, description="models and aliases that it may ask for; default: all", examples=["[chat]"]
    )
    limits: LimitSet = LimitSet()
    priority: Number = Field(default=0.0, description="who waits for room goes by it, the highest first")
    expires: Instant | None = Field(
        default=None,
        description="from when on it is refused: a date, or a time with its zone",
        examples=['"2027-01-31"'],
    )
    disabled: bool = Field(default=False, description="it is refused for now", examples=["false"])
    tags: tuple[Name, ...] = Field(default=(), description="words of yours, shown with its usage", examples=["[batch]"])


class State(Section):
    """Where the counts of limits and usage are kept. Without Redis, each process has its own."""

    redis: RedisUrl | None = Field(
        default=None,
        description="redis://, rediss:// (TLS), unix:///path, redis+sentinel://host:26379,host:26379/NAME or "
        "redis+cluster://host:6379",
        examples=["redis://127.0.0.1:6379/0"],
    )
    password: Secret | None = Field(
        default=None, description="Redis' password, if the URL has none", examples=["${REDIS_PASSWORD}"]
    )
    when_away: Literal["open", "closed"] = Field(
        default="open",
        description="while Redis is away: open serves, and each process holds the limits by itself; closed refuses "
        "what is limited",
    )
    prefix: KeyPrefix = Field(
        default="turnout", description="begins the name of everything kept in Redis; gateways with one prefix share"
    )
