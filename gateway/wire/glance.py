"""An event of a stream, read as far as its relay has to know it."""

from typing import Any, Final

import msgspec

NULL: Final = msgspec.Raw(b"null")
_NOTHING: Final = (b'""', b"null", b"[]")


class Choice(msgspec.Struct):
    """What one choice of an event adds."""

    delta: dict[str, msgspec.Raw] | None = None
    text: str | None = None
    finish_reason: Any = None

    @property
    def says_something(self) -> bool:
        """Whether it adds more than a role."""
        if self.text or self.finish_reason is not None:
            return True
        delta = self.delta or {}
        return any(key != "role" and bytes(value) not in _NOTHING for key, value in delta.items())


class Glance(msgspec.Struct):
    """The members that a relay looks at."""

    id: str | None = None
    model: str | None = None
    object: str | None = None
    created: Any = None
    choices: list[Choice] | None = None
    error: msgspec.Raw = NULL  # in a union with None, msgspec's Raw takes nothing but null

    @property
    def is_error(self) -> bool:
        """Whether the event says that something went wrong."""
        return bytes(self.error) != b"null" or self.object == "error"


glance = msgspec.json.Decoder(Glance).decode
"""Reads an event's data. Raises msgspec.DecodeError for another form, RecursionError for one too deep."""
