"""What follows when an endpoint changes its state: a count, and another place for the calls that wait on a dead one."""

import asyncio

from gateway.balance.breaker import Position
from gateway.balance.endpoint import Endpoint, EndpointState, Notice, StateChange
from gateway.metrics import Meters
from gateway.proxy.deadlines import Deadlines
from gateway.proxy.downstream import Carrier


class Reactions:
    """A `Notice` that tells another one, and acts as soon as the balance is done with its own work."""

    def __init__(self, loop: asyncio.AbstractEventLoop, deadlines: Deadlines, meters: Meters, then: Notice) -> None:
        self._loop = loop
        self._deadlines = deadlines
        self._meters = meters
        self._then = then

    def __call__(self, change: StateChange) -> None:
        """Takes a change note."""
        ejected = EndpointState.EJECTED
        if change.new is ejected and change.old is not ejected:
            self._meters.happened("ejections", change.engine)
        # A circuit that is not closed means ejected, so here it has moved; else only the health checks have spoken.
        if change.circuit is not Position.CLOSED or change.old is ejected:
            self._meters.happened("circuit_changes", change.engine, change.circuit.value)
        if change.new is EndpointState.DOWN:
            self._loop.call_soon(self._leave, change.endpoint)
        self._then(change)

    def _leave(self, endpoint: Endpoint) -> None:
        """Whoever carries a call waits in the wheel of deadlines, so no other list is kept."""
        for entry in self._deadlines.entries():
            if isinstance(entry, Carrier) and entry.exchange is not None:
                entry.exchange.endpoint_lost(endpoint)
