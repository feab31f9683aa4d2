"""What the supervisor and its members tell one another, as bytes on a stream socket.

A frame is a length, a kind, a number and a payload; what the last two mean is up to the kind.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

_HEAD: Final = struct.Struct(">IBQ")


class Kind(IntEnum):
    """What a frame says."""

    READY = 1
    """Member: requests are taken."""
    LEAVING = 2
    """Member: no new requests are taken any more."""
    COUNTS = 3
    """Member: a snapshot of its counts. The number is that of the poll it answers, 0 if nobody asked."""
    ASK = 4
    """Member: a snapshot of its counts, and the wish for those of all. The number comes back with the answer."""
    POLL = 5
    """Supervisor: the wish for a member's counts, numbered upwards from 1."""
    TOTAL = 6
    """Supervisor: the counts of all, for the ask with the number."""
    CALL = 7
    """Member: something for all to heed, or at least to answer. The number comes back with the answers."""
    ORDER = 8
    """Supervisor: what a member has called, numbered upwards from 1; all get all orders in one sequence."""
    REPLY = 9
    """Member: its answer to the order with the number."""
    REPLIES = 10
    """Supervisor: the answers of all, for the call with the number."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message."""

    kind: Kind
    number: int = 0
    payload: bytes = b""

    def encode(self) -> bytes:
        """The bytes to send."""
        return _HEAD.pack(len(self.payload), self.kind, self.number) + self.payload


class FrameReader:
    """Finds frames in bytes that come in pieces. What a dying member began and did not end never becomes a frame."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, piece: bytes) -> Iterator[Frame]:
        """The frames that are complete with this piece."""
        self._buffer += piece
        while len(self._buffer) >= _HEAD.size:
            length, kind, number = _HEAD.unpack_from(self._buffer)
            end = _HEAD.size + length
            if len(self._buffer) < end:
                return
            payload = bytes(self._buffer[_HEAD.size : end])
            del self._buffer[:end]
            yield Frame(Kind(kind), number, payload)
