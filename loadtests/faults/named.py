"""The gateway, with names that are read from a file: `python loadtests/faults/named.py FILE serve …`.

The file has lines of a name and its addresses, and is read at every look-up, as if a name server were asked.
"""

import runpy
import socket
import sys
from pathlib import Path
from typing import Final

import uvloop

Found = list[tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int]]]

NAME: Final = "replicas.test"


def addresses_of(names: Path, host: str) -> list[str]:
    """What a name stands for; an address stands for itself."""
    known = dict(line.split(maxsplit=1) for line in names.read_text().splitlines())
    return known.get(host, host).split()


def install(names: Path) -> None:
    """Lets event loops look names up in the file, and only there."""

    async def getaddrinfo(
        _loop: uvloop.Loop,
        host: str,
        port: int,
        **_: object,
    ) -> Found:
        stream = socket.SOCK_STREAM
        return [(socket.AF_INET, stream, 0, "", (address, port)) for address in addresses_of(names, host)]

    uvloop.Loop.getaddrinfo = getaddrinfo  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    install(Path(sys.argv[1]))
    sys.argv[0:2] = ["turnout"]
    sys.path.insert(0, str(Path(__file__).parents[2]))
    runpy.run_module("gateway", run_name="__main__")
