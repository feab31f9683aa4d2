"""Who carries calls on their way through: both drive the same exchange."""

import asyncio
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import assert_never

from gateway.proxy.guarded import GuardedProtocol
from gateway.proxy.plane import PlaneSource
from gateway.proxy.protocol import GatewayProtocol


class Carrier(StrEnum):
    """How calls are carried. Both do the same; the protocol costs less, ASGI runs under any ASGI server."""

    PROTOCOL = "protocol"
    ASGI = "asgi"


def protocol_of(source: PlaneSource, carrier: Carrier) -> Callable[..., asyncio.Protocol]:
    """What to give to uvicorn as ``http``: the carrier's protocol for one gateway."""
    match carrier:
        case Carrier.PROTOCOL:
            return partial(GatewayProtocol, source)
        case Carrier.ASGI:
            return partial(GuardedProtocol, source)
        case _:
            assert_never(carrier)
