"""Compressed answers, for engines or middle boxes that compress although ``identity`` was asked for.

One decompressor per answer, fed as the bytes come: a flush per event must not end it (cases.md A15).
"""

import zlib
from typing import Final

_WINDOW: Final = {b"gzip": 16 + zlib.MAX_WBITS, b"x-gzip": 16 + zlib.MAX_WBITS, b"deflate": zlib.MAX_WBITS}


class InflateError(ValueError):
    """The bytes are not what their content-encoding says, or the encoding is not known."""


class Inflater:
    """Undoes one content-encoding."""

    __slots__ = ("_inner",)

    def __init__(self, encoding: bytes) -> None:
        """Raises InflateError for anything but gzip and deflate."""
        window = _WINDOW.get(encoding)
        if window is None:
            raise InflateError("the engine compressed its answer in a way that was not asked for")
        self._inner = zlib.decompressobj(window)

    def feed(self, data: bytes) -> bytes:
        """The plain bytes. Raises InflateError for broken input."""
        try:
            return self._inner.decompress(data)
        except zlib.error as error:
            raise InflateError(str(error)) from None
