"""How a serving process heeds what another one has asked of all, and what it answers."""

from typing import assert_never

from gateway.api import configuration, fleet
from gateway.api.orders import Call, Drain, Look, Put, Refused, Reread
from gateway.api.view import View


async def obey(view: View, call: Call) -> bytes:
    """Heeds a call; gives the answer."""
    match call:
        case Look():
            return fleet.told(view)
        case Drain(order):
            view.heed(order)
            return fleet.told(view)
        case Put():
            await view.take(call.configuration)
            return configuration.told(view)
        case Refused(error):
            await view.take(error)
            return configuration.told(view)
        case Reread():  # the supervisor sends what it has found instead
            return configuration.told(view)
        case _:
            assert_never(call)
