"""Triton's answers, which are the same in JSON over HTTP and in JSON made of gRPC's messages, as values."""

from collections.abc import Mapping, Sequence

from engines.kserve import ModelEntry, state_of
from gateway.kserve.control import Statistics


def entries(listed: object) -> list[ModelEntry]:
    """The lines of an index."""
    return [
        ModelEntry(_text(one, "name"), _text(one, "version"), state_of(one.get("state")), _text(one, "reason"))
        for one in _objects(listed)
    ]


def statistics(answer: object) -> list[Statistics]:
    """What the versions of models have done."""
    found = answer.get("model_stats") if isinstance(answer, Mapping) else None
    return [_statistics(one) for one in _objects(found)]


def _statistics(one: Mapping[str, object]) -> Statistics:
    counts = one.get("inference_stats")
    kept = counts if isinstance(counts, Mapping) else {}
    return Statistics(
        name=_text(one, "name"),
        version=_text(one, "version"),
        last=_number(one.get("last_inference")),
        succeeded=_count(kept.get("success"), "count"),
        failed=_count(kept.get("fail"), "count"),
        took=_count(kept.get("success"), "ns"),
        queued=_count(kept.get("queue"), "ns"),
    )


def _objects(listed: object) -> Sequence[Mapping[str, object]]:
    return [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []


def _text(one: Mapping[str, object], name: str) -> str:
    found = one.get(name)
    return found if isinstance(found, str) else ""


def _count(part: object, name: str) -> int:
    return _number(part.get(name)) if isinstance(part, Mapping) else 0


def _number(found: object) -> int:
    """A whole number; protobuf's JSON writes long ones as texts, and leaves zeros out."""
    if isinstance(found, str) and found.isdecimal():
        return int(found)
    return found if isinstance(found, int) else 0
