"""What operators have said about draining, as something to remember and to say again.

A process that starts later, or a configuration that is loaded later, must hear what still holds.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DrainOrder:
    """Gives an endpoint of an engine no more requests, or takes it back. Without ``url``, all of the engine."""

    engine: str
    url: str | None
    drained: bool


class StandingOrders:
    """The orders that still hold. Said again in their order, they lead to what all orders ever noted have led to."""

    def __init__(self, orders: Iterable[DrainOrder] = ()) -> None:
        self._orders: dict[tuple[str, str | None], DrainOrder] = {}
        for order in orders:
            self.note(order)

    def __iter__(self) -> Iterator[DrainOrder]:
        return iter(list(self._orders.values()))

    def of(self, engine: str) -> dict[str | None, bool]:
        """Whether endpoints of the engine are drained, by URL, as far as anything was said; None: all the others."""
        return {url: order.drained for (name, url), order in self._orders.items() if name == engine}

    def note(self, order: DrainOrder) -> None:
        """A new order. One about a whole engine ends all that was said about its endpoints."""
        overtaken = [at for at in self._orders if at[0] == order.engine and order.url in (None, at[1])]
        for at in overtaken:
            del self._orders[at]
        if order.drained or (order.engine, None) in self._orders:
            self._orders[order.engine, order.url] = order
