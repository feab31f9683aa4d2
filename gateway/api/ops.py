"""What operators and their machines ask: is it alive, can it serve, what has it counted.

Where several processes serve one port, any of them gives the counts of all. Whether it is alive and can serve, each
says of itself.
"""

import asyncio
import importlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Literal, TypeAlias

from fastapi import APIRouter, Header
from prometheus_client.core import Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector, CollectorRegistry
from pydantic import BaseModel
from starlette.responses import JSONResponse, PlainTextResponse, Response

from gateway.api.view import View, engine_serves, model_may_be_served, serves
from gateway.balance.endpoint import EndpointState
from gateway.metrics import Snapshot, TotalUnavailable
from gateway.proxy.links import EngineLink

Encode: TypeAlias = Callable[[CollectorRegistry], bytes]
"""Writes all metrics in one of Prometheus' formats."""


class Alive(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """Whether requests can be served, and what stands in the way."""

    status: Literal["ready", "degraded", "not_ready"]
    reasons: list[str]


def readiness(view: View) -> Readiness:
    """``not_ready``: no model has an endpoint that may serve. ``degraded``: something is missing somewhere."""
    plane = view.plane
    reasons = list(_reasons(view))
    if not any(map(model_may_be_served, plane.asked.values())):
        return Readiness(status="not_ready", reasons=reasons or ["no model can be served"])
    return Readiness(status="degraded" if reasons else "ready", reasons=reasons)


def _reasons(view: View) -> Iterator[str]:
    plane = view.plane
    if view.config.error:
        yield "config: the file cannot be used as it is now; what was in force before still is (GET /admin/config)"
    for name, link in plane.engines.items():
        missing = _missing(link)
        if missing:
            yield f"engine {name}: {missing}"
        if any(endpoint in link.refusing for endpoint in link.engine.endpoints):
            yield f"engine {name}: refuses the gateway's credentials"
        for kind in sorted({link.mistaken[one].value for one in link.engine.endpoints if one in link.mistaken}):
            yield f"engine {name}: seems to be {kind}, and is configured as {link.profile.kind.value}"
    if view.trouble:
        yield view.trouble
    if not plane.asked:
        yield "no model is known: no engine has listed one yet"


def _missing(link: EngineLink) -> str:
    """What keeps requests from an engine's endpoints, "" if nothing does. One that an operator drains is not missed."""
    counts = Counter(endpoint.state for endpoint in link.engine.endpoints)
    total = counts.total()
    if total == 0:
        return "no address is known"
    states = ", ".join(sorted(state.value for state in counts))
    if counts[EndpointState.DRAINING] == total:
        return "an operator has taken all of its endpoints out of service (POST /admin/engines/NAME/undrain ends that)"
    if not engine_serves(link):
        if counts[EndpointState.EJECTED]:
            return f"requests fail, and are tried there only as a last resort ({states})"
        return f"no endpoint serves ({states})"
    away = [(state, counts[state]) for state in (EndpointState.DOWN, EndpointState.EJECTED) if counts[state]]
    return ", ".join(f"{count} of {total} endpoints {state.value}" for state, count in away)


class ProcessNumbers(Collector):
    """What the operating system says about this process, or the given numbers in the same form."""

    def __init__(self, numbers: Mapping[str, float] | None = None) -> None:
        self._source = ProcessCollector(registry=None)
        self._numbers = numbers

    def collect(self) -> Iterable[Metric]:
        """Prometheus' view."""
        for metric in self._source.collect():
            if self._numbers is not None:
                metric.samples = [one._replace(value=self._numbers.get(one.name, one.value)) for one in metric.samples]
            yield metric

    def read(self) -> dict[str, float]:
        """The numbers by name."""
        return {sample.name: sample.value for metric in self.collect() for sample in metric.samples}


def registry(meters: Collector, process: Collector) -> CollectorRegistry:
    """The gateway's own metrics and those of its process; nothing of the libraries' default registry."""
    found = CollectorRegistry(auto_describe=False)
    found.register(meters)
    found.register(process)
    return found


def snapshot(view: View, *, thorough: bool) -> Snapshot:
    """What this process has counted; ``thorough`` also asks the operating system again."""
    see_endpoints(view)
    if thorough:
        view.meters.process = ProcessNumbers().read()
    return view.meters.snapshot()


def see_endpoints(view: View) -> None:
    """Lets the metrics know each endpoint's state now."""
    view.meters.see_endpoints(
        {
            (name, endpoint.url): serves(endpoint)
            for name, link in view.plane.engines.items()
            for endpoint in link.engine.endpoints
        }
    )


def _encoder(accept: str) -> tuple[Encode, str]:
    """What writes the format that a scraper wants, and its content type.

    prometheus-client has it in one module with servers and clients of its own: loaded with the first scrape.
    """
    found: tuple[Encode, str] = importlib.import_module("prometheus_client.exposition").choose_encoder(accept)
    return found


def router(view: View) -> APIRouter:
    """The routes."""
    routes = APIRouter(tags=["operation"])
    rendering = asyncio.Lock()

    async def healthz() -> Alive:
        """Says that the process answers."""
        return Alive()

    async def readyz() -> JSONResponse:
        """Says whether the process that answers can serve requests; 503 if not. `/metrics` is of all processes."""
        found = readiness(view)
        return JSONResponse(found.model_dump(), 503 if found.status == "not_ready" else 200)

    async def metrics(accept: Annotated[str, Header()] = "") -> Response:
        """Gives all counts in Prometheus' text format, or as OpenMetrics if asked for."""
        encode, content_type = await asyncio.to_thread(_encoder, accept)
        if view.meters.ask_all is None:
            total, process = snapshot(view, thorough=False), ProcessNumbers()
        else:
            try:
                total = await view.meters.ask_all(snapshot(view, thorough=True))
            except TotalUnavailable:
                return PlainTextResponse("the counts of the other processes cannot be had now\n", 503)
            process = ProcessNumbers(total.process)
        # A thousand models are half a second of text: in a thread, from a copy, so that nobody waits for it.
        shown = registry(view.meters.showing(total), process)
        async with rendering:
            text = await asyncio.to_thread(encode, shown)
        return Response(text, headers={"content-type": content_type})

    routes.add_api_route("/healthz", healthz, methods=["GET"])
    routes.add_api_route(
        "/readyz", readyz, methods=["GET"], response_model=Readiness, responses={503: {"model": Readiness}}
    )
    routes.add_api_route(
        "/metrics", metrics, methods=["GET"], response_class=Response, responses={200: {"content": {"text/plain": {}}}}
    )
    for path, endpoint in (("/healthz", healthz), ("/readyz", readyz), ("/metrics", metrics)):
        routes.add_api_route(path, endpoint, methods=["HEAD"], include_in_schema=False, response_model=None)
    return routes
