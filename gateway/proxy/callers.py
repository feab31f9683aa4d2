"""Who calls: from the key that a request shows to what its bearer may do.

A key is found by its SHA-256, in one dictionary. That takes the same time for keys that exist and keys that do not,
as far as a stranger can use it: what is compared are hashes, and nobody can choose keys by what their hash begins with.
Keys have 256 random bits, so there is nothing to gain from a slow hash either. No key is kept, and none is repeated.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from math import inf
from typing import Final

from engines.profile import Operation
from gateway.errors import AuthenticationFailed, PermissionDenied
from gateway.settings.keys import Key
from gateway.wire.anthropic import ANTHROPIC

AUTHORIZATION: Final = b"authorization"
X_API_KEY: Final = b"x-api-key"
"""Where Anthropic's clients put their key; it counts on their paths only."""


@dataclass(slots=True, eq=False)
class Caller:
    """One key of the configuration. ``until`` is in Unix seconds; ``models`` None: all."""

    name: str
    models: frozenset[str] | None = None
    until: float = inf
    disabled: bool = False
    priority: float = 0.0
    tags: tuple[str, ...] = ()
    watched: bool = field(init=False)
    """Whether the key is not good for ever, and has to be looked at with each request."""

    rank: int = field(init=False)
    """Its priority as vLLM spells it: the lowest goes first."""

    def __post_init__(self) -> None:
        self.rank = -round(self.priority)
        self.watched = self.disabled or self.until < inf

    def may_ask(self, asked: str, model: str) -> bool:
        """Whether it may ask for ``model`` by the name ``asked``: the list has one of the two, or there is none."""
        return self.models is None or asked in self.models or model in self.models


class Callers:
    """The keys that let in."""

    __slots__ = ("_by_digest",)

    def __init__(self, keys: Iterable[Key]) -> None:
        self._by_digest: Mapping[bytes, Caller] = {
            bytes.fromhex(key.hash.removeprefix("sha256:")): Caller(
                key.name,
                None if key.models is None else frozenset(key.models),
                inf if key.expires is None else key.expires,
                key.disabled,
                key.priority,
                key.tags,
            )
            for key in keys
        }

    def __iter__(self) -> "Iterable[Caller]":
        return iter(self._by_digest.values())

    def find(self, operation: Operation | None, headers: Iterable[tuple[bytes, bytes]]) -> Caller | None:
        """Who shows a key in these headers (names in lower case); None for an unknown key, or none.

        Where both headers are sent, either may hold the right one: Claude Code sends a token of its own beside a key.
        """
        found: Caller | None = None
        for name, value in headers:
            if name == AUTHORIZATION:
                scheme, _, key = value.partition(b" ")
                if scheme.lower() == b"bearer":
                    found = self._by_digest.get(sha256(key.strip()).digest()) or found
            elif name == X_API_KEY and (operation is None or operation in ANTHROPIC):
                found = self._by_digest.get(sha256(value).digest()) or found
        return found


def let_in(caller: Caller | None, now: float) -> Caller:
    """The caller, if its key is good at ``now`` (Unix seconds).

    Raises:
        AuthenticationFailed: no key, an unknown one, or one that is not good any more. It does not repeat the key.
    """
    if caller is None:
        raise AuthenticationFailed(
            "A valid API key is needed: none was sent, or it is not known here. Send it as "
            "'Authorization: Bearer KEY', or on /v1/messages and /v1/models as 'x-api-key: KEY'."
        )
    if caller.disabled:
        raise AuthenticationFailed("This API key is disabled. Whoever runs this gateway can give another one.")
    if now >= caller.until:
        raise AuthenticationFailed("This API key has expired. Whoever runs this gateway can give another one.")
    return caller


def not_allowed(asked: str) -> PermissionDenied:
    """The refusal of a model that the caller's key is not for."""
    return PermissionDenied(
        f"This API key may not use the model '{asked}'. GET /v1/models lists what it may use.",
        param="model",
        code="model_not_found",
    )
