"""What the gateway counts, as plain numbers on the path of a request and as Prometheus text when asked.

A label look-up per request costs more than the rest of the count (performance.md: 1.1 to 1.5 µs each), so each pair of
model and engine owns a `Meter` that is found once, when the routes are built. Label values come from the
configuration only: a client cannot make new series.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

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


class Histogram:
    """Counts of seconds by bucket; the last bucket has no upper bound."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        """Counts one observation."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds

    def cumulative(self) -> list[tuple[str, float]]:
        """Prometheus' form: each bucket holds what is at most its bound."""
        found = []
        running = 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            running += count
            found.append((bound, float(running)))
        return found


class Meter:
    """All counts of one model on one engine."""

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
        self.request.observe(seconds)

    def retried(self, reason: str) -> None:
        """One attempt was followed by another."""
        self.retries[reason] = self.retries.get(reason, 0) + 1


class Meters(Collector):
    """All meters, findable by model and engine, and readable by prometheus-client.

    They outlive a change of the configuration: a model that comes back goes on counting where it was.
    """

    def __init__(self) -> None:
        self._meters: dict[tuple[str, str], Meter] = {}
        self._endpoints: Mapping[tuple[str, str], bool] = {}
        self._shed: dict[str, int] = {}
        self.config_hash = ""

    def meter(self, model: str, engine: str) -> Meter:
        """The meter of a model on an engine; "" for requests that reached no engine."""
        found = self._meters.get((model, engine))
        if found is None:
            found = self._meters[model, engine] = Meter(model, engine)
        return found

    def shed(self, reason: str) -> None:
        """One request was turned away for want of room."""
        self._shed[reason] = self._shed.get(reason, 0) + 1

    def see_endpoints(self, up: Mapping[tuple[str, str], bool]) -> None:
        """What is known of each (engine, endpoint) now."""
        self._endpoints = up

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
        shed = CounterMetricFamily("turnout_shed", "Requests turned away for want of room.", labels=("reason",))
        for reason, count in self._shed.items():
            shed.add_metric((reason,), count)
        up = GaugeMetricFamily(
            "turnout_endpoint_up", "1 while an endpoint may be given requests.", labels=("engine", "endpoint")
        )
        for at, is_up in self._endpoints.items():
            up.add_metric(at, float(is_up))
        yield from (shed, up)
        if self.config_hash:
            yield InfoMetricFamily("turnout_config", "The configuration in force.", {"hash": self.config_hash})
