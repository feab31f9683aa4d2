"""Prometheus text: what the engines' metrics paths print."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engines.simulator.load import Histogram


@dataclass(frozen=True, slots=True)
class Sample:
    """One value with its labels."""

    value: float
    labels: Mapping[str, str]


def family(name: str, kind: str, text: str, samples: Iterable[Sample]) -> str:
    """A gauge or counter with its HELP and TYPE lines."""
    lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    lines += [f"{name}{_labels(sample.labels)} {float(sample.value)}" for sample in samples]
    return "\n".join(lines) + "\n"


def histogram(name: str, text: str, series: Iterable[tuple[Mapping[str, str], Histogram]]) -> str:
    """A histogram with its buckets, count and sum."""
    lines = [f"# HELP {name} {text}", f"# TYPE {name} histogram"]
    for labels, values in series:
        below = 0
        for bound, count in zip((*values.bounds, float("inf")), values.counts, strict=True):
            below += count
            shown = "+Inf" if bound == float("inf") else str(bound)
            lines.append(f"{name}_bucket{_labels({**labels, 'le': shown})} {float(below)}")
        lines.append(f"{name}_count{_labels(labels)} {float(values.count)}")
        lines.append(f"{name}_sum{_labels(labels)} {values.total}")
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    inner = ",".join(f'{name}="{_escaped(value)}"' for name, value in sorted(labels.items()))
    return f"{{{inner}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
