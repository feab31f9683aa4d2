"""How a serving process heeds what another one has asked of all, and what it answers."""

from typing import assert_never

from gateway import logs
from gateway.api import configuration, fleet, observing
from gateway.api.orders import Call, Drain, Errors, Look, Put, Refused, Reread, SetLevel
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
        case SetLevel(level):
            if level is not None:
                logs.set_level(level)
            return observing.told_level()
        case Errors():
            return observing.told_errors(view)
        case Reread():  # the supervisor sends what it has found instead
            return configuration.told(view)
        case _:
            assert_never(call)
