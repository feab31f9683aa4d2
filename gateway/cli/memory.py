"""Memory that is free goes back to the system: at the end of the start, and when it gets quiet."""

import ctypes
import gc
from typing import Final

KEPT_FREE: Final = 16 * 2**20
"""Bytes of free memory that may stay with the process while it works, and the size from which blocks are mapped on
their own. Bodies of a few hundred kilobytes would be mapped and unmapped by the kernel for each request.
"""

M_TRIM_THRESHOLD: Final = -1
M_MMAP_THRESHOLD: Final = -3
"""Names of mallopt(3)."""

LOOKS: Final = 5
"""Tenths of a second between two looks whether it has become quiet."""

BUSY, QUIET = 0.05, 0.01
"""Seconds of CPU time between two looks, from which there is work, and below which there is next to none."""


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
    """Lets the system have what is free; a millisecond or less, and somewhat more for the next requests."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):  # glibc
        libc.malloc_trim(0)


class Lull:
    """Tells when there is nothing to do any more after there was."""

    def __init__(self) -> None:
        self._spent = 0.0
        self._worked = False

    def comes(self, spent: float) -> bool:
        """Takes a look: ``spent`` is the CPU time of the process until now, in seconds. True once after each busy time."""
        since, self._spent = spent - self._spent, spent
        if since >= BUSY:
            self._worked = True
        elif since < QUIET and self._worked:
            self._worked = False
            return True
        return False
