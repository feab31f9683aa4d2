"""What all serving processes together know of the engines, and how an order reaches every one of them.

Where several processes serve one port, a request of an operator comes to one of them, and which one is chance. So it is
passed on: each process obeys and tells its view, and the answer is made of all views.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from pydantic import BaseModel, TypeAdapter

from gateway.api.orders import CHANGES, Call, Drain, Look
from gateway.api.view import AskAll, View
from gateway.balance.drains import DrainOrder
from gateway.balance.endpoint import EndpointState
from gateway.errors import GatewayFailed
from gateway.proxy.links import EngineLink


class EndpointStatus(BaseModel):
    """One replica. `reason` says why it is in its state, where that is not plain.

    Of several processes' views, the state that keeps requests away the most is shown, with a reason that says in how
    many it holds; `in_flight` is the sum.
    """

    url: str
    state: str
    reason: str
    in_flight: int


class EngineStatus(BaseModel):
    """One engine of the configuration."""

    name: str
    kind: str
    version: str | None
    endpoints: list[EndpointStatus]


class ProcessesUnreachable(GatewayFailed):
    """The other serving processes cannot be asked, or one of them does not answer."""

    status = 503
    code = "processes_unreachable"


SEVERITY: Final = tuple(
    state.value
    for state in (
        EndpointState.UNKNOWN,
        EndpointState.UP,
        EndpointState.EJECTED,
        EndpointState.DOWN,
        EndpointState.DRAINING,
    )
)
"""The states, the one that keeps requests away the most last."""

_VIEWS: Final = TypeAdapter(list[EngineStatus])


def status_of(link: EngineLink) -> EngineStatus:
    """What is known of an engine here, those endpoints included that have left and still finish requests."""
    leaving = [endpoint for endpoint in link.endpoints if endpoint not in link.engine.endpoints and endpoint.in_flight]
    return EngineStatus(
        name=link.engine.name,
        kind=link.engine.kind.value,
        version=link.engine.version,
        endpoints=[
            EndpointStatus(url=one.url, state=one.state.value, reason=one.reason, in_flight=one.in_flight)
            for one in (*link.engine.endpoints, *leaving)
        ],
    )


def own_view(view: View) -> list[EngineStatus]:
    """Every engine as this process sees it."""
    return [status_of(link) for link in view.plane.engines.values()]


def told(view: View) -> bytes:
    """This process's view for another one. Before the start, it is empty."""
    return _VIEWS.dump_json(own_view(view) if view.started else [])


async def everywhere(view: View, order: DrainOrder | None = None) -> list[EngineStatus]:
    """Lets all processes heed an order, if there is one, and gives every engine as they see it together.

    Raises:
        ProcessesUnreachable: it is not certain that all have heeded it.
    """
    if view.ask_all is None:
        if order is not None:
            view.heed(order)
        return own_view(view)
    return merged(map(_VIEWS.validate_json, await ask(view.ask_all, Look() if order is None else Drain(order))))


async def ask(ask_all: AskAll, call: Call) -> Sequence[bytes]:
    """Everybody's answer to a call.

    Raises:
        ProcessesUnreachable: the call changes something, and it is not certain that all have heeded it.
    """
    replies = await ask_all(call)
    if isinstance(call, CHANGES) and replies.missing:
        all_of_them = replies.missing + len(replies.views)
        raise ProcessesUnreachable(
            f"{replies.missing} of {all_of_them} serving processes have not confirmed in time. "
            "The order stands, and they follow as soon as they can; asking again does no harm."
        )
    return replies.views


def merged(views: Iterable[Sequence[EngineStatus]]) -> list[EngineStatus]:
    """Several processes' views as one."""
    by_name: dict[str, list[EngineStatus]] = {}
    for seen in views:
        for engine in seen:
            by_name.setdefault(engine.name, []).append(engine)
    return [_engine(engines) for engines in by_name.values()]


def _engine(engines: Sequence[EngineStatus]) -> EngineStatus:
    by_url: dict[str, list[EndpointStatus]] = {}
    for engine in engines:
        for endpoint in engine.endpoints:
            by_url.setdefault(endpoint.url, []).append(endpoint)
    version = next((engine.version for engine in engines if engine.version is not None), None)
    return engines[0].model_copy(
        update={"version": version, "endpoints": [_endpoint(endpoints) for endpoints in by_url.values()]}
    )


def _endpoint(endpoints: Sequence[EndpointStatus]) -> EndpointStatus:
    worst = max(endpoints, key=lambda endpoint: SEVERITY.index(endpoint.state))
    alike = sum(endpoint.state == worst.state for endpoint in endpoints)
    settled = SEVERITY.index(worst.state) <= SEVERITY.index(EndpointState.UP)  # not checked yet is not a difference
    some = "" if alike == len(endpoints) or settled else f"in {alike} of {len(endpoints)} processes: "
    return worst.model_copy(
        update={"reason": some + worst.reason, "in_flight": sum(endpoint.in_flight for endpoint in endpoints)}
    )
