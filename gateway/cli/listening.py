"""The sockets of `turnout serve`: taken, shared with a successor, and let go of without losing anybody."""

import contextlib
import errno
import os
import resource
import socket
import sys
from collections.abc import Iterable
from typing import Final

from gateway.cli.failing import Failure
from gateway.settings import Server

BACKLOG: Final = 4096
"""Connections that the kernel keeps while the loop is busy."""

SHARES: Final = sys.platform == "linux"
"""Whether the kernel spreads connections over sockets that share a port, and lets the last one alone have all."""


_TAKE_OVER: Final = "; --take-over shares it with another gateway"


def bind(server: Server, *, take_over: bool = False, hint: str = _TAKE_OVER) -> list[socket.socket]:
    """Sockets on every address of the host, all with one port.

    A port that somebody listens on is refused, unless ``take_over`` says to share it with a gateway of the same user.
    ``hint`` is what the refusal says besides.

    Raises:
        Failure: the address cannot be had.
    """
    bound: list[socket.socket] = []
    port = server.port
    try:
        # As bytes: Python would load its tables of international names to read the usual ones, too.
        host = server.host.encode() if server.host.isascii() else server.host
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, address in dict.fromkeys(found):
            one = socket.socket(family, socket.SOCK_STREAM)
            bound.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6 and len(found) > 1:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            if take_over:
                share(one)
            one.bind((address[0], port, *address[2:]))
            port = one.getsockname()[1]
            one.settimeout(0)
            one.listen(BACKLOG)
            share(one)  # only now: whoever comes later has to ask for it
    except OSError as error:
        for one in bound:
            one.close()
        why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        more = "" if take_over or error.errno != errno.EADDRINUSE else hint
        raise Failure(f"cannot listen on {server.host}:{port}: {why}{more}") from None
    return bound


def allow_connections() -> None:
    """Raises this process's limit of open files to the highest that it may have.

    A stream needs two, and many systems begin with 1024: enough for 500 streams, after which nobody would get in.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # some systems call more possible than they give
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def share(one: socket.socket) -> None:
    """Allows other sockets, of processes of the same user that ask for it, on the same address."""
    if SHARES:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)


def url_of(listener: socket.socket) -> str:
    """The base URL under which a listening socket can be reached from this machine."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Waiting:
    """The connections that the kernel has accepted and the loop has not seen yet.

    A listening socket that closes resets them, though their clients are connected and may have sent a request. So it
    stays open, through a second descriptor, until the last of them is taken. Between the last look and the close are a
    few microseconds; Linux closes this gap too with `sysctl net.ipv4.tcp_migrate_req=1`.
    """

    def __init__(self, listeners: Iterable[socket.socket]) -> None:
        self._listeners = [one.dup() for one in listeners]

    def take(self) -> list[socket.socket]:
        """All of them, and lets go of the port."""
        taken: list[socket.socket] = []
        for one in self._listeners:
            with contextlib.suppress(OSError):  # nobody waits any more, or no descriptor is left
                while True:
                    taken.append(one.accept()[0])
            one.close()
        self._listeners.clear()
        return taken
