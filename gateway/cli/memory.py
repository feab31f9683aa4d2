"""Memory that is free goes back to the system: at the end of the start, and every now and then."""

import ctypes
import gc
from typing import Final

KEPT_FREE: Final = 16 * 2**20
"""Bytes of free memory that may stay with the process between two such times, and the size from which blocks are mapped
on their own. Bodies of a few hundred kilobytes would be mapped and unmapped by the kernel for each request.
"""

M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
"""Names of mallopt(3)."""

GIVE_BACK_EVERY: Final = 2.0
"""Seconds. It takes 10 to 300 microseconds, and as much again of the next requests, which get pages anew."""


def settle_memory() -> None:
    """Ends the start: what it has built stays for good, so the collector need not look at it again (5 to 10 % of a
    request's cost), and what it has thrown away goes back to the system.
    """
    gc.collect()
    gc.freeze()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):  # glibc
        libc.mallopt(M_MMAP_THRESHOLD, KEPT_FREE)
        libc.mallopt(M_TRIM_THRESHOLD, KEPT_FREE)
    give_back()


def give_back() -> None:
    """Lets the system have what is free now, such as the room of large bodies that have passed."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):  # glibc
        libc.malloc_trim(0)
