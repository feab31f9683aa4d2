"""What processes tell one another of endpoints: requests in flight, and ejections. Sans-I/O."""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

import msgspec

from gateway.balance.endpoint import EndpointState
from gateway.balance.engine import Engine
from gateway.balance.evidence import doubt, hear_of_others

Told: TypeAlias = list[tuple[str, str, int, bool]]
"""Engine, endpoint, our requests in flight there, and whether we have ejected it."""

HOLDS: Final = 2.5
"""Seconds for which what others have told counts; they tell it anew with each beat."""

_decode = msgspec.json.Decoder(Told).decode


def tell(engines: Mapping[str, Engine]) -> str:
    """What is not plain: endpoints with requests in flight, and ejected ones."""
    told: Told = [
        (name, endpoint.url, endpoint.in_flight, endpoint.state is EndpointState.EJECTED)
        for name, engine in engines.items()
        for endpoint in engine.endpoints
        if endpoint.in_flight or endpoint.state is EndpointState.EJECTED
    ]
    return msgspec.json.encode(told).decode()


def hear(engines: Mapping[str, Engine], all_told: Iterable[str], now: float) -> None:
    """Takes what the others tell into account. What one of them tells in another form is left out."""
    running: dict[tuple[str, str], int] = {}
    ejected: set[tuple[str, str]] = set()
    for text in all_told:
        try:
            told = _decode(text)
        except msgspec.DecodeError:
            continue
        for name, url, in_flight, out in told:
            running[name, url] = running.get((name, url), 0) + in_flight
            if out:
                ejected.add((name, url))
    for name, engine in engines.items():
        for endpoint in engine.endpoints:
            at = (name, endpoint.url)
            hear_of_others(engine, endpoint, running.get(at, 0), now + HOLDS, now)
            if at in ejected:
                doubt(engine, endpoint, now + HOLDS)
