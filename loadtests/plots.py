"""A scenario's plots, side by side."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from plotly import graph_objects
from plotly.subplots import make_subplots

from loadtests.run import Measured, Result
from loadtests.sample import OK, Sample
from loadtests.summary import betweens, errors, firsts, percentile, wholes
from loadtests.usage import shares

COLOURS: Final = {"gateway": "#1f6feb", "direct": "#8b949e"}
PERCENTS: Final = (*range(1, 100), 99.5, 99.9)
BIN: Final = 0.5
"""Seconds that one point of a rate stands for."""

TITLES: Final = (
    "Answered requests per second",
    "Streamed events per second",
    "Errors by kind",
    "First event, ms by percentile",
    "Between events, ms by percentile",
    "Added by the gateway, ms by percentile",
    "Gateway CPU, % of a core",
    "Gateway memory, MB",
)

Values = Callable[[Sequence[Sample]], list[float]]


def figure(result: Result) -> graph_objects.Figure:
    """All plots of one scenario."""
    plots = make_subplots(rows=3, cols=3, subplot_titles=TITLES, vertical_spacing=0.11, horizontal_spacing=0.07)
    for side, measured in (("direct", result.direct), ("gateway", result.gateway)):
        good = [sample for sample in measured.loaded.samples if sample.outcome == OK]
        _line(plots, side, 1, 1, rate([sample.last or 0.0 for sample in good]))
        _line(plots, side, 1, 2, rate([at for sample in good for at in event_moments(sample)]))
        kinds = errors(measured.loaded.samples)
        bars = graph_objects.Bar(x=list(kinds), y=list(kinds.values()), marker_color=COLOURS[side], showlegend=False)
        plots.add_trace(bars, row=1, col=3)
        _line(plots, side, 2, 1, curve(firsts(good)))
        _line(plots, side, 2, 2, curve(betweens(good)))
    for name, values, dash in (("first", firsts, "solid"), ("whole", wholes, "dot")):
        points = difference(result.gateway, result.direct, values)
        _line(plots, "gateway", 2, 3, points, name=f"added to {name}", dash=dash)
    looks = result.gateway.looks
    _line(plots, "gateway", 3, 1, shares(list(looks)))
    _line(plots, "gateway", 3, 2, [(look.at, look.memory / 1e6) for look in looks])
    plots.update_xaxes(rangemode="tozero")
    plots.update_yaxes(rangemode="tozero")
    plots.update_layout(
        height=780, template="plotly_white", margin={"t": 40, "b": 30, "l": 40, "r": 20}, legend={"orientation": "h"}
    )
    return plots


def _line(
    plots: graph_objects.Figure,
    side: str,
    row: int,
    column: int,
    points: Sequence[tuple[float, float]],
    *,
    name: str | None = None,
    dash: str = "solid",
) -> None:
    line = graph_objects.Scatter(
        x=[x for x, _ in points],
        y=[y for _, y in points],
        mode="lines",
        name=name or side,
        line={"color": COLOURS[side], "dash": dash},
        showlegend=name is not None or (row, column) == (1, 1),
    )
    plots.add_trace(line, row=row, col=column)


def event_moments(sample: Sample) -> list[float]:
    """When each event arrived."""
    if sample.first is None or not sample.events:
        return []
    moments = [sample.first]
    for gap in sample.gaps:
        moments.append(moments[-1] + gap)
    return moments


def rate(moments: Sequence[float]) -> list[tuple[float, float]]:
    """Occurrences per second over time."""
    counts = Counter(int(moment / BIN) for moment in moments)
    return [((place + 0.5) * BIN, counts[place] / BIN) for place in range(max(counts, default=-1) + 1)]


def curve(seconds: Sequence[float]) -> list[tuple[float, float]]:
    """Milliseconds by percentile."""
    ordered = sorted(seconds)
    return [(percent, 1000 * percentile(ordered, percent)) for percent in PERCENTS] if ordered else []


def difference(ours: Measured, theirs: Measured, values: Values) -> list[tuple[float, float]]:
    """Milliseconds between the percentiles of the two sides."""
    mine, other = curve(values(ours.loaded.samples)), curve(values(theirs.loaded.samples))
    return [(percent, left - right) for (percent, left), (_, right) in zip(mine, other, strict=False)]
