"""What is needed of a client of Redis, and how one is come by. Nothing here needs the library."""

import importlib
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias

from gateway.settings.keys import State


class RedisFault(Exception):
    """Redis says no, or cannot be talked with. What it says of itself holds no address and no password."""


class UnknownScript(RedisFault):
    """It does not know the script by its hash."""


class Client(Protocol):
    """What is needed of a client. Its calls raise RedisFault, whatever is wrong with Redis."""

    def execute_command(self, *args: Any) -> Awaitable[Any]:  # noqa: ANN401 - what a command takes and gives is its own
        """One command."""

    def exchange(self, *args: Any) -> Awaitable[Any]:  # noqa: ANN401 - as above
        """One command of those that are sent one after another; at less cost where that is possible."""

    def aclose(self) -> Awaitable[None]:
        """Ends all connections."""


Connect: TypeAlias = Callable[[State], Client]
"""Makes a client that connects with its first command; raises RedisFault."""


def load_clients() -> Connect:
    """Gives what makes clients (`connect.connect`). The first time takes a tenth of a second or two, and some megabytes
    for as long as the process lives, so it is for those only whom `state.redis` tells to.
    """
    connect: Connect = importlib.import_module("gateway.background.shared.connect").connect
    return connect
