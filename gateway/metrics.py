"""What the gateway counts, as plain numbers on the path of a request and as Prometheus text when asked.

A label look-up per request costs more than the rest of the count (performance.md: 1.1 to 1.5 µs each), so each pair of
model and engine owns a `Meter` that is found once, when the routes are built. Label values come from the
configuration only: a client cannot make new series.

Where several processes serve one port, each counts by itself. A `Snapshot` is what one has counted; added up, they are
what all have.
"""

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from gateway.histogram import Histogram, QueueMeter, Seconds
from gateway.usage import UsageBook, UsageRow

REQUEST_BUCKETS: Final = (
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    20.0,
    40.0,
    80.0,
    160.0,
    320.0,
    640.0,
)
FIRST_TOKEN_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0)
INTER_TOKEN_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.5, 5.0)

EVENTS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "shed": ("Requests turned away for want of room.", ("reason",)),
    "ejections": ("Endpoints taken out because requests fail on them.", ("engine",)),
    "circuit_changes": ("Changes of endpoints' circuit breakers.", ("engine", "position")),
    "tool_markup_leaked": ("Answers with tool-call markup in their content.", ("model",)),
    "limited": ("Requests refused by a limit.", ("account", "limit")),
    "state_changes": ("Times that Redis went away or came back.", ("state",)),
    "state_failures": ("Exchanges with Redis that failed.", ("kind",)),
    "keys_refused": ("Requests refused for their key.", ("reason",)),
    "fallbacks": ("Requests that another model was asked to answer.", ("model", "fallback", "reason")),
}
"""What happens now and then: the help text and the labels of each counter."""

PROCESS_RULES: Final[Mapping[str, Callable[[float, float], float]]] = {
    "process_start_time_seconds": min,
    "process_max_fds": max,
}
"""How the operating system's numbers of several processes become one; those not named here are added up."""

PROCESS_KEPT: Final = frozenset({"process_cpu_seconds_total", "process_start_time_seconds"})
"""The operating system's numbers that still count when a process has ended."""


class TotalUnavailable(Exception):
    """What the other processes have counted cannot be had, and this one's counts alone would be wrong."""


class MeterCounts(msgspec.Struct, array_like=True):
    """What a `Meter` holds; see there."""

    model: str
    engine: str
    in_flight: int
    input_tokens: int
    output_tokens: int
    outcomes: dict[str, int]
    retries: dict[str, int]
    request: Seconds
    first_token: Seconds
    inter_token: Seconds


class Snapshot(msgspec.Struct, array_like=True):
    """What one process has counted, or several together. Meters that have nothing to say are left out."""

    meters: list[MeterCounts] = []
    events: list[tuple[str, tuple[str, ...], int]] = []
    """A name and labels of `EVENTS`, and how often."""
    queues: list[tuple[str, int, Seconds]] = []
    """By model, what a `QueueMeter` holds."""
    endpoints: list[tuple[str, str, bool]] = []
    """Engine, endpoint, and whether it may be given requests."""
    process: dict[str, float] = {}
    """What the operating system says, by the metric's name."""
    usage: list[UsageRow] = []

    def final(self) -> "Snapshot":
        """What stays of it when the process has ended: nothing is in flight, and nobody looks at endpoints."""
        kept = {name: value for name, value in self.process.items() if name in PROCESS_KEPT}
        meters = [msgspec.structs.replace(counts, in_flight=0) for counts in self.meters]
        queues = [(model, 0, seconds) for model, _, seconds in self.queues]
        return Snapshot(meters, self.events, queues, [], kept, self.usage)


class Meter:
    """All counts of one model on one engine."""

    NUMBERS: Final = ("in_flight", "input_tokens", "output_tokens")
    COUNTS: Final = ("outcomes", "retries")
    HISTOGRAMS: Final = ("request", "first_token", "inter_token")

    __slots__ = (
        "engine",
        "first_token",
        "in_flight",
        "input_tokens",
        "inter_token",
        "model",
        "outcomes",
        "output_tokens",
        "request",
        "retries",
    )

    def __init__(self, model: str, engine: str) -> None:
        self.model = model
        self.engine = engine
        self.in_flight = 0
        self.input_tokens = 0
        self.output_tokens = 0
        self.outcomes: dict[str, int] = {}
        self.retries: dict[str, int] = {}
        self.request = Histogram(REQUEST_BUCKETS)
        self.first_token = Histogram(FIRST_TOKEN_BUCKETS)
        self.inter_token = Histogram(INTER_TOKEN_BUCKETS)

    def ended(self, outcome: str, seconds: float) -> None:
        """One request ended so, after that time."""
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        request = self.request
        request.counts[bisect_left(request.bounds, seconds)] += 1
        request.total += seconds

    def retried(self, reason: str) -> None:
        """One attempt was followed by another."""
        self.retries[reason] = self.retries.get(reason, 0) + 1

    def counts(self) -> MeterCounts | None:
        """What it holds, as a view for sending at once; None if that is nothing."""
        if not (self.outcomes or self.in_flight or self.retries or self.input_tokens or self.output_tokens):
            return None
        return MeterCounts(
            self.model,
            self.engine,
            self.in_flight,
            self.input_tokens,
            self.output_tokens,
            self.outcomes,
            self.retries,
            (self.request.counts, self.request.total),
            (self.first_token.counts, self.first_token.total),
            (self.inter_token.counts, self.inter_token.total),
        )

    def add(self, other: MeterCounts) -> None:
        """Takes in what another process counted for the same model and engine."""
        for name in self.NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in self.COUNTS:
            _add_up(getattr(self, name), getattr(other, name))
        for name in self.HISTOGRAMS:
            getattr(self, name).add(getattr(other, name))


def _add_up(mine: dict[str, int], others: Mapping[str, int]) -> None:
    for key, count in others.items():
        mine[key] = mine.get(key, 0) + count


class Meters(Collector):
    """All meters, findable by model and engine, and readable by prometheus-client.

    They outlive a change of the configuration: a model that comes back goes on counting where it was. `ask_all` is
    there where several processes serve: it gives the counts of all, or raises `TotalUnavailable`.
    """

    def __init__(self) -> None:
        self._meters: dict[tuple[str, str], Meter] = {}
        self._endpoints: Mapping[tuple[str, str], bool] = {}
        self._events: dict[tuple[str, tuple[str, ...]], int] = {}
        self._queues: dict[str, QueueMeter] = {}
        self.usage = UsageBook()
        self.process: dict[str, float] = {}
        self.config_hash = ""
        self.config_loaded_at = 0.0
        self.config_refused = False
        self.ask_all: Callable[[Snapshot], Awaitable[Snapshot]] | None = None

    def meter(self, model: str, engine: str) -> Meter:
        """The meter of a model on an engine; "" for requests that reached no engine."""
        found = self._meters.get((model, engine))
        if found is None:
            found = self._meters[model, engine] = Meter(model, engine)
        return found

    def queue(self, model: str) -> QueueMeter:
        """The numbers of a model's queue."""
        return self._queues.setdefault(model, QueueMeter())

    def shed(self, reason: str) -> None:
        """One request was turned away for want of room."""
        self.happened("shed", reason)

    def happened(self, event: str, *labels: str, times: int = 1) -> None:
        """One of `EVENTS` happened; its labels in their order."""
        self._events[event, labels] = self._events.get((event, labels), 0) + times

    def see_endpoints(self, up: Mapping[tuple[str, str], bool]) -> None:
        """What is known of each (engine, endpoint) now."""
        self._endpoints = up

    def snapshot(self) -> Snapshot:
        """All counts, as a view: to be sent or added before anything is counted again."""
        meters = [counts for meter in self._meters.values() if (counts := meter.counts()) is not None]
        events = [(*at, count) for at, count in self._events.items()]
        queues = [(model, one.depth, one.seconds.seen) for model, one in self._queues.items()]
        return Snapshot(
            meters, events, queues, [(*at, up) for at, up in self._endpoints.items()], self.process, list(self.usage)
        )

    def add(self, other: Snapshot) -> None:
        """Takes in what another process counted. An endpoint is up if any process may give it requests."""
        for counts in other.meters:
            self.meter(counts.model, counts.engine).add(counts)
        for event, labels, count in other.events:
            self.happened(event, *labels, times=count)
        for model, depth, seconds in other.queues:
            self.queue(model).depth += depth
            self.queue(model).seconds.add(seconds)
        for row in other.usage:
            self.usage.add(row)
        endpoints = dict(self._endpoints)
        for engine, endpoint, up in other.endpoints:
            endpoints[engine, endpoint] = endpoints.get((engine, endpoint), False) or up
        self._endpoints = endpoints
        for name, value in other.process.items():
            mine = self.process.get(name)
            rule = PROCESS_RULES.get(name, float.__add__)
            self.process[name] = value if mine is None else rule(mine, value)

    def showing(self, total: Snapshot) -> "Meters":
        """Other meters that hold exactly these counts, with all the series that these have, in their order."""
        shown = Meters()
        shown.config_hash = self.config_hash
        shown.config_loaded_at, shown.config_refused = self.config_loaded_at, self.config_refused
        for model, engine in self._meters:
            shown.meter(model, engine)
        for model in self._queues:
            shown.queue(model)
        shown.see_endpoints(dict.fromkeys(self._endpoints, False))
        shown.add(total)
        return shown

    def collect(self) -> Iterable[Metric]:
        """Prometheus' view (prometheus-client calls this at each scrape)."""
        yield from self._counters()
        yield from self._histograms()
        yield from self._states()

    def _counters(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "turnout_requests", "Requests by how they ended.", labels=("model", "engine", "outcome")
        )
        retries = CounterMetricFamily(
            "turnout_retries", "Further attempts by reason.", labels=("model", "engine", "reason")
        )
        tokens = CounterMetricFamily(
            "turnout_tokens", "Tokens as the engines count them.", labels=("model", "engine", "direction")
        )
        in_flight = GaugeMetricFamily("turnout_in_flight", "Requests being served.", labels=("model", "engine"))
        for meter in self._meters.values():
            at = (meter.model, meter.engine)
            for outcome, count in meter.outcomes.items():
                requests.add_metric((*at, outcome), count)
            for reason, count in meter.retries.items():
                retries.add_metric((*at, reason), count)
            tokens.add_metric((*at, "input"), meter.input_tokens)
            tokens.add_metric((*at, "output"), meter.output_tokens)
            in_flight.add_metric(at, meter.in_flight)
        yield from (requests, retries, tokens, in_flight)

    def _histograms(self) -> Iterator[Metric]:
        kinds = (
            ("turnout_request_seconds", "From the whole request to the end of the answer.", "request"),
            ("turnout_first_token_seconds", "From the whole request to the first event of a stream.", "first_token"),
            ("turnout_inter_token_seconds", "Between two packets of events of a stream.", "inter_token"),
        )
        for name, text, attribute in kinds:
            family = HistogramMetricFamily(name, text, labels=("model", "engine"))
            for meter in self._meters.values():
                if meter.engine:
                    histogram: Histogram = getattr(meter, attribute)
                    family.add_metric((meter.model, meter.engine), histogram.cumulative(), histogram.total)
            yield family

    def _states(self) -> Iterator[Metric]:
        for event, (text, labels) in EVENTS.items():
            family = CounterMetricFamily(f"turnout_{event}", text, labels=labels)
            for (name, values), count in self._events.items():
                if name == event:
                    family.add_metric(values, count)
            yield family
        yield from self._waiting()
        up = GaugeMetricFamily(
            "turnout_endpoint_up", "1 while an endpoint may be given requests.", labels=("engine", "endpoint")
        )
        for at, is_up in self._endpoints.items():
            up.add_metric(at, float(is_up))
        yield up
        if self.config_hash:
            yield InfoMetricFamily("turnout_config", "The configuration in force.", {"hash": self.config_hash})
            yield GaugeMetricFamily(
                "turnout_config_last_reload_successful",
                "0 while the configuration's file cannot be used as it is.",
                float(not self.config_refused),
            )
            yield GaugeMetricFamily(
                "turnout_config_last_reload_success_timestamp_seconds",
                "When the configuration in force was loaded.",
                self.config_loaded_at,
            )

    def _waiting(self) -> Iterator[Metric]:
        depth = GaugeMetricFamily("turnout_queue_depth", "Requests that wait for room.", labels=("model",))
        waited = HistogramMetricFamily("turnout_queue_seconds", "What they waited before they went.", labels=("model",))
        for model, meter in self._queues.items():
            depth.add_metric((model,), meter.depth)
            waited.add_metric((model,), meter.seconds.cumulative(), meter.seconds.total)
        yield from (depth, waited)
