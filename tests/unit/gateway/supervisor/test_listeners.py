"""One port for several processes."""

import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from gateway.cli.listening import bind
from gateway.settings import Server
from gateway.supervisor.listeners import KERNEL_BALANCES, spread


@pytest.fixture
def after() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def accepted(listener: socket.socket) -> int:
    """How many connections wait at a listening socket; takes them."""
    count = 0
    while select.select([listener], [], [], 0)[0]:
        listener.accept()[0].close()
        count += 1
    return count


@pytest.mark.skipif(not KERNEL_BALANCES, reason="the kernel spreads connections on Linux only")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_every_place_gets_connections_and_none_is_lost(after: ExitStack, host: str) -> None:
    places = spread(bind(Server(host=host, port=0)), 3, 100)
    for one in (one for listeners in places for one in listeners):
        after.enter_context(one)
    address = places[0][0].getsockname()[:2]
    for _ in range(120):
        after.enter_context(socket.create_connection(address, timeout=5))
    counts = [accepted(listeners[0]) for listeners in places]

    assert sum(counts) == 120
    assert min(counts) > 10


@pytest.mark.skipif(not KERNEL_BALANCES, reason="ports are shared on Linux only")
def test_a_port_that_is_shared_among_places_is_in_use_for_everybody_else(after: ExitStack) -> None:
    places = spread(bind(Server(port=0)), 2, 100)
    for listeners in places:
        after.enter_context(listeners[0])
    port = places[0][0].getsockname()[1]

    with pytest.raises(Exception, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
        bind(Server(port=port))


def test_where_the_kernel_does_not_balance_all_places_share_the_sockets(after: ExitStack) -> None:
    bound = bind(Server(port=0))
    after.enter_context(bound[0])

    assert spread(bound, 3, 100, balanced=False) == [bound, bound, bound]
