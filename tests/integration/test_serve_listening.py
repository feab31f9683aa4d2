"""The server's own behaviour: addresses, and what happens when the application's tasks die."""

import asyncio
import socket
from collections.abc import Iterator

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from gateway.app import create_app
from gateway.cli.failing import Failure
from gateway.cli.listening import bind, url_of
from gateway.cli.server import GatewayServer
from gateway.settings import Server, Settings
from tests.support.waiting import within


@pytest.fixture
def bound() -> Iterator[list[socket.socket]]:
    """Sockets to close."""
    sockets: list[socket.socket] = []
    yield sockets
    for one in sockets:
        one.close()


@pytest.mark.parametrize(
    ("host", "hosts"), [("127.0.0.1", {"127.0.0.1"}), ("::1", {"::1"}), ("localhost", {"127.0.0.1", "::1"})]
)
def test_a_host_is_listened_to_on_all_its_addresses_with_one_port(
    bound: list[socket.socket], host: str, hosts: set[str]
) -> None:
    bound += bind(Server(host=host, port=0))
    names = [one.getsockname() for one in bound]

    assert {name[0] for name in names} <= hosts
    assert len({name[1] for name in names}) == 1
    for name in names:
        with socket.create_connection((name[0], name[1]), timeout=5):
            pass


def test_a_url_can_be_used_as_it_is(bound: list[socket.socket]) -> None:
    bound += bind(Server(host="::1", port=0))

    assert url_of(bound[0]) == f"http://[::1]:{bound[0].getsockname()[1]}"


def test_a_host_that_does_not_exist_is_one_readable_line() -> None:
    with pytest.raises(Failure, match=r"cannot listen on no\.such\.host\.invalid:0: "):
        bind(Server(host="no.such.host.invalid", port=0))


async def test_a_gateway_whose_tasks_died_ends_instead_of_lingering(bound: list[socket.socket]) -> None:
    """Without health checks it would go on sending requests to dead engines."""

    listening = asyncio.Event()

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "lifespan"
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await listening.wait()
        raise RuntimeError("a background task failed")

    bound += bind(Server(port=0))
    config = uvicorn.Config(application, lifespan="on", log_config=None, access_log=False)
    server = GatewayServer(config, create_app(Settings()).gateway, lambda url: listening.set())
    await within(server.serve(bound), what="the end of the server")

    assert server.crashed
