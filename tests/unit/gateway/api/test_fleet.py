"""Several processes' views of the engines as one."""

import pytest

from gateway.api.fleet import EndpointStatus, EngineStatus, merged

URL = "http://h:1"


def seen(
    state: str, reason: str = "", in_flight: int = 0, *, url: str = URL, version: str | None = None
) -> EngineStatus:
    endpoint = EndpointStatus(url=url, state=state, reason=reason, in_flight=in_flight)
    return EngineStatus(name="e", kind="vllm", version=version, endpoints=[endpoint])


@pytest.mark.parametrize(
    ("views", "shown"),
    [
        ([seen("up", in_flight=2), seen("up", in_flight=3)], ("up", "", 5)),
        ([seen("unknown", "not checked yet"), seen("up", in_flight=1)], ("up", "", 1)),
        ([seen("draining", "drained"), seen("draining", "drained")], ("draining", "drained", 0)),
        ([seen("up"), seen("down", "no answer", 1)], ("down", "in 1 of 2 processes: no answer", 1)),
        ([seen("ejected", "open"), seen("up"), seen("ejected", "open")], ("ejected", "in 2 of 3 processes: open", 0)),
        ([seen("ejected", "open"), seen("down", "gone")], ("down", "in 1 of 2 processes: gone", 0)),
    ],
)
def test_the_state_that_keeps_most_away_is_shown(views: list[EngineStatus], shown: tuple[str, str, int]) -> None:
    (engine,) = merged([view] for view in views)
    (endpoint,) = engine.endpoints

    assert (endpoint.state, endpoint.reason, endpoint.in_flight) == shown


def test_endpoints_that_only_some_know_are_all_there() -> None:
    (engine,) = merged([[seen("up")], [seen("up", url="http://h:2", version="1.0")], []])

    assert [endpoint.url for endpoint in engine.endpoints] == [URL, "http://h:2"]
    assert engine.version == "1.0"
