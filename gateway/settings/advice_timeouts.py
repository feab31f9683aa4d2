"""Warnings about timeouts that contradict one another: one of the two can never run out."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from gateway.settings.engines import Timeouts
from gateway.settings.models import ModelTimeouts
from gateway.settings.problems import Finding, Path
from gateway.settings.tree import Settings
from gateway.settings.units import duration_text

_BELOW: Final = (("first_token", "total"), ("idle", "total"), ("connect", "first_token"))
"""The first of two should be below the second."""
RULE: Final = "contradicting-timeouts"


def contradicting_timeouts(settings: Settings) -> Iterator[Finding]:
    """A phase that may last longer than the whole; waiting longer than that; signs of life that come too late."""
    for name, engine in settings.engines.items():
        limits = {key: getattr(engine.timeouts, key) for key in Timeouts.model_fields}
        yield from _phases(("engines", name, "timeouts"), limits, engine.timeouts.model_fields_set)
    for name, model in settings.models.items():
        written = _written(model.timeouts)
        for target in model.targets_of(name) if written else ():
            engine = settings.engines[target.engine]
            limits = {key: getattr(engine.timeouts, key) for key in Timeouts.model_fields} | written
            found = list(_phases(("models", name, "timeouts"), limits, written.keys()))
            yield from found
            if found:
                break
    yield from _waiting(settings)
    yield from _signs_of_life(settings)


def _written(timeouts: ModelTimeouts) -> dict[str, float]:
    given = ((key, getattr(timeouts, key)) for key in ModelTimeouts.model_fields)
    return {key: value for key, value in given if value is not None}


def _phases(here: Path, limits: Mapping[str, float], keys: AbstractSet[str]) -> Iterator[Finding]:
    for lower, upper in _BELOW:
        if limits[lower] > limits[upper] and keys & {lower, upper}:
            to_blame = lower if lower in keys else upper
            other = upper if to_blame == lower else lower
            word = "longer" if to_blame == lower else "shorter"
            message = f"{word} than {other} ({duration_text(limits[other])}), so that {lower} never runs out"
            yield Finding((*here, to_blame), message, f"{lower} below {upper}", rule=RULE)


def _waiting(settings: Settings) -> Iterator[Finding]:
    totals = [
        model.timeouts.total or settings.engines[target.engine].timeouts.total
        for name, model in settings.models.items()
        for target in model.targets_of(name)
    ]
    shortest = min(totals, default=settings.admission.wait)
    if settings.admission.wait > shortest and "wait" in settings.admission.model_fields_set:
        message = f"a request would wait longer than it may take in all (total: {duration_text(shortest)})"
        yield Finding(("admission", "wait"), message, "wait below every total", rule=RULE)


def _signs_of_life(settings: Settings) -> Iterator[Finding]:
    first = [engine.timeouts.first_token for engine in settings.engines.values()]
    first += [model.timeouts.first_token for model in settings.models.values() if model.timeouts.first_token]
    longest = max(first, default=0.0)
    if settings.server.heartbeat is not None and settings.server.heartbeat >= longest > 0:
        message = f"no sign of life is ever sent: the first token may take {duration_text(longest)} at most"
        yield Finding(("server", "heartbeat"), message, "make it shorter than first_token", rule=RULE)
