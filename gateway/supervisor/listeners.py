"""One port for several processes."""

import socket
import sys
from collections.abc import Sequence
from typing import Final

KERNEL_BALANCES: Final = sys.platform == "linux"
"""Whether the kernel spreads connections over sockets that share a port. Elsewhere the last one may get all."""


def spread(
    listeners: Sequence[socket.socket], places: int, backlog: int, *, balanced: bool = KERNEL_BALANCES
) -> list[list[socket.socket]]:
    """For each place, sockets that listen where `listeners` do; these themselves are the first place's.

    A socket of its own for each place lets the kernel spread the connections. On one socket for all, whoever wakes up
    first takes what there is: of 8 connections at once all went to one of two processes, of 64 at once 47. Because the
    supervisor keeps every socket open, no connection is lost while a place is empty: it waits for the next member.

    Sharing is allowed only after `listeners` have been bound, so a port that somebody listens on is still refused.
    """
    if not balanced:
        return [list(listeners) for _ in range(places)]
    for one in listeners:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    return [list(listeners)] + [[_twin(one, backlog) for one in listeners] for _ in range(places - 1)]


def _twin(listener: socket.socket, backlog: int) -> socket.socket:
    twin = socket.socket(listener.family, socket.SOCK_STREAM)
    twin.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    twin.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if listener.family == socket.AF_INET6:
        only = listener.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
        twin.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only)
    twin.bind(listener.getsockname())
    twin.settimeout(0)
    twin.listen(backlog)
    return twin
