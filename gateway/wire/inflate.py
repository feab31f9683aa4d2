"""Compressed answers, for engines or middle boxes that compress although ``identity`` was asked for.

One decompressor per answer, fed as the bytes come: a flush per event must not end it (cases.md A15).
"""

import zlib
from typing import Final

_WINDOW: Final = {b"gzip": 16 + zlib.MAX_WBITS, b"x-gzip": 16 + zlib.MAX_WBITS, b"deflate": zlib.MAX_WBITS}


class InflateError(ValueError):
    """The bytes are not what their content-encoding says, or the encoding is not known."""


class Inflater:
    """Undoes one content-encoding; gzip may come in several members, one per event."""

    __slots__ = ("_inner", "_window")

    def __init__(self, encoding: bytes) -> None:
        """Raises InflateError for anything but gzip and deflate."""
        window = _WINDOW.get(encoding)
        if window is None:
            raise InflateError("the engine compressed its answer in a way that was not asked for")
        self._window = window
        self._inner = zlib.decompressobj(window)

    def feed(self, data: bytes) -> bytes:
        """The plain bytes. Raises InflateError for broken input."""
        plain = b""
        try:
            while data:
                if self._inner.eof:
                    self._inner = zlib.decompressobj(self._window)
                plain += self._inner.decompress(data)
                data = self._inner.unused_data
        except zlib.error as error:
            raise InflateError(str(error)) from None
        return plain
