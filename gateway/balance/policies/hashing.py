"""Hashes for affinity: the same in every process and on every run, unlike Python's own."""

from hashlib import blake2b
from math import log
from typing import Final

_RANGE: Final = 2.0**64


def score(key: bytes, label: bytes) -> int:
    """64 bits that depend on both; rendezvous hashing gives a key to the label with the highest."""
    # The key's length is part of the text, so that no two pairs of key and label read the same.
    return int.from_bytes(blake2b(b"%d:%b%b" % (len(key), key, label), digest_size=8).digest(), "big")


def weighted_score(key: bytes, label: bytes, weight: float) -> float:
    """Like `score`, but a label wins a part of all keys that is proportional to its weight (above 0)."""
    return -weight / log((score(key, label) + 0.5) / _RANGE)
