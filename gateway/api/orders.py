"""What the serving processes of a gateway tell one another by way of the supervisor: one closed set.

All processes were forked from one and speak over socket pairs that nobody else can reach, so that settings may go from
one to the other as Python pickles them: read and checked once, secrets included, and equal everywhere.
"""

import pickle
from typing import Final, TypeAlias

import msgspec

from gateway import logs
from gateway.balance.drains import DrainOrder
from gateway.settings.source import Configuration


class Look(msgspec.Struct, frozen=True, tag="look"):
    """Nothing to heed: everybody tells the engines as it sees them."""


class Drain(msgspec.Struct, frozen=True, tag="drain"):
    """Drains or undrains; everybody tells the engines as it sees them then."""

    order: DrainOrder


class Put(msgspec.Struct, frozen=True, tag="put"):
    """Puts a configuration in force; everybody tells what is in force then."""

    pickled: bytes
    hash: str
    source: str
    loaded_at: float

    @classmethod
    def of(cls, one: Configuration) -> "Put":
        """The order that puts a configuration in force."""
        return cls(pickle.dumps(one.settings), one.hash, one.source, one.loaded_at)

    @property
    def configuration(self) -> Configuration:
        """What is to be in force."""
        settings = pickle.loads(self.pickled)  # noqa: S301 - from a process of our own, see above
        return Configuration(settings, self.hash, self.source, self.loaded_at)


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """The file cannot be used as it is now, and why; everybody tells what is in force."""

    error: str


class SetLevel(msgspec.Struct, frozen=True, tag="level"):
    """Writes less or more to the log from here on; None changes nothing. Everybody tells its level then."""

    level: logs.Level | None = None


class Errors(msgspec.Struct, frozen=True, tag="errors"):
    """Nothing to heed: everybody tells the errors of late."""


class Reread(msgspec.Struct, frozen=True, tag="reread"):
    """Asks the supervisor to read the file. What comes to the serving processes is what it has found."""


Order: TypeAlias = Look | Drain | Put | Refused | SetLevel | Errors
"""What a process obeys."""

Call: TypeAlias = Order | Reread
"""What a process asks for."""

CHANGES: Final = (Drain, Put, Refused, Reread, SetLevel)
"""Orders that are not over before all have heeded them."""

_CALLS: Final = msgspec.msgpack.Decoder(Call)


def encoded(call: Call) -> bytes:
    """A call as bytes."""
    return msgspec.msgpack.encode(call)


def decoded(payload: bytes) -> Call:
    """The call that some bytes are."""
    return _CALLS.decode(payload)
