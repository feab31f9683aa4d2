"""Who carries calls on their way through: both drive the same exchange."""

import asyncio
from enum import StrEnum
from typing import Any

from uvicorn.config import Config
from uvicorn.server import ServerState

from gateway.proxy.plane import PlaneSource
from gateway.proxy.protocol import GatewayProtocol


class Carrier(StrEnum):
    """How calls are carried. Both do the same; the protocol costs less, ASGI runs under any ASGI server."""

    PROTOCOL = "protocol"
    ASGI = "asgi"


def protocol_of(source: PlaneSource) -> type[asyncio.Protocol]:
    """The class to give to uvicorn as ``http``: `GatewayProtocol` for one gateway."""

    class BoundProtocol(GatewayProtocol):
        __slots__ = ()

        def __init__(
            self,
            config: Config,
            server_state: ServerState,
            app_state: dict[str, Any],
            _loop: asyncio.AbstractEventLoop | None = None,
        ) -> None:
            super().__init__(source, config, server_state, app_state, _loop)

    return BoundProtocol
