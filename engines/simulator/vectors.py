"""Deterministic embeddings: the same input gives the same vector of unit length, on every machine."""

import base64
import hashlib
import math
import struct
from collections.abc import Sequence


def vector(text: str | Sequence[int], dimensions: int) -> list[float]:
    """A vector of unit length that depends on the input alone; values are exact float32 numbers."""
    seed = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else repr(list(text)).encode()
    raw = hashlib.shake_256(seed).digest(2 * dimensions)
    numbers = [value / 32768 for value in struct.unpack(f"<{dimensions}h", raw)]
    length = math.sqrt(math.fsum(number * number for number in numbers)) or 1.0
    packed = struct.pack(f"<{dimensions}f", *(number / length for number in numbers))
    return list(struct.unpack(f"<{dimensions}f", packed))


def packed(numbers: Sequence[float]) -> str:
    """The base64 form: little-endian float32."""
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()
