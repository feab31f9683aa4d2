"""A configuration that follows another one: the same as after a restart, and nothing that is known gets lost."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from types import FunctionType, MethodType

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from gateway.balance import evidence
from gateway.balance.endpoint import EndpointState
from gateway.balance.lease import Lease
from gateway.balance.outcome import SERVED
from gateway.metrics import Meters
from gateway.proxy.building import build_plane
from gateway.proxy.plane import Plane
from gateway.settings.crosscheck import crosscheck
from gateway.settings.redacted import ForeignTreeError, redacted_tree, settings_of
from gateway.settings.tree import Settings
from tests.support.json_type import Json
from tests.support.settings_edits import edits, trees

KNOWN_AT_RUN_TIME = {
    "Engine": {"due", "notice", "ready"},
    "Endpoint": {"warm_since", "warm_limit", "ceiling", "placed", "cold", "state", "reason"},
    "EngineLink": {"loop", "doubted"},
    "ConnectionPool": {"_loop"},
    "AdmissionQueue": {"_loop", "meter"},
    "Plane": {"loop", "meters", "deadlines", "ids"},
    "Tooling": {"_meters"},
    "Destination": {"meter"},
    "Asked": {"unserved"},
    "Guard": {"_meters", "clock"},
    "Limiter": {"_meters", "usage"},
}
"""By class, the attributes that a configuration says nothing about."""

PLAIN = (str, bytes, int, float, bool, type(None), Enum, SecretStr, BaseModel)


class StillLoop(asyncio.AbstractEventLoop):
    """A loop on which no time passes, and nothing is called."""

    def time(self) -> float:
        return 100.0

    def call_soon(self, *_: object, **__: object) -> asyncio.Handle:
        raise AssertionError("nothing is due")


def attributes(value: object) -> Iterator[tuple[str, object]]:
    """Everything that an object holds, in slots or otherwise."""
    hidden = KNOWN_AT_RUN_TIME.get(type(value).__name__, set())
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    for name in dict.fromkeys([*names, *getattr(value, "__dict__", ())]):
        if name not in hidden and hasattr(value, name):
            yield name, getattr(value, name)


def told(value: object, at: str = "plane", around: tuple[int, ...] = ()) -> Iterator[tuple[str, object]]:
    """A value as paths and plain values that are equal to those of another one exactly if both behave alike."""
    if isinstance(value, PLAIN):
        yield at, value
        return
    if id(value) in around:
        return
    around = (*around, id(value))
    if isinstance(value, Mapping):
        yield f"{at}.keys", [dict(told(key)) for key in value]
        for number, one in enumerate(value.values()):
            yield from told(one, f"{at}[{number}]", around)
    elif isinstance(value, AbstractSet):
        yield at, sorted(repr(list(told(one))) for one in value)
    elif isinstance(value, Sequence):
        for number, one in enumerate(value):
            yield from told(one, f"{at}[{number}]", around)
    elif isinstance(value, MethodType):
        yield at, (value.__func__.__qualname__, type(value.__self__))
    elif isinstance(value, FunctionType):
        yield at, value.__qualname__
        for number, cell in enumerate(value.__closure__ or ()):
            yield from told(cell.cell_contents, f"{at}({number})", around)
    else:
        yield at, type(value)
        for name, one in attributes(value):
            yield from told(one, f"{at}.{name}", around)


def differences(one: Plane, other: Plane) -> dict[str, tuple[object, object]]:
    """What a configuration would have to explain."""
    left, right = dict(told(one)), dict(told(other))
    paths = [*left, *(path for path in right if path not in left)]
    return {path: (left.get(path), right.get(path)) for path in paths if left.get(path) != right.get(path)}


URLS = [f"http://10.0.0.{number}:8000" for number in range(1, 5)] + ["http://[::1]:9000/base"]
ENGINES = ["a", "b", "c"]


@st.composite
def engine(draw: st.DrawFn) -> dict[str, Json]:
    made: dict[str, Json] = {
        "kind": draw(st.sampled_from(["vllm", "vllm", "trtllm", "triton"])),
        "urls": draw(st.lists(st.sampled_from(URLS), min_size=1, max_size=3, unique=True)),
    }
    rest: dict[str, st.SearchStrategy[Json]] = {
        "api_key": st.sampled_from(["sk-1", "sk-2"]),
        "max_in_flight": st.integers(1, 3),
        "guided_decoding": st.booleans(),
        "keep_alive": st.sampled_from(["2s", "30s"]),
        "parser": st.sampled_from(["hermes", "none", "mistral"]),
        "timeouts": st.fixed_dictionaries({}, optional={"connect": st.just("1s"), "first_token": st.just("9s")}),
        "health": st.fixed_dictionaries({}, optional={"interval": st.just("1s"), "path": st.just("/h")}),
    }
    chosen = draw(st.sets(st.sampled_from(sorted(rest))))
    return made | {name: draw(rest[name]) for name in sorted(chosen)}


@st.composite
def model(draw: st.DrawFn, name: str, engines: Sequence[str], models: Sequence[str]) -> dict[str, Json]:
    targets = draw(st.lists(st.sampled_from(engines), min_size=1, max_size=2, unique=True))
    made: dict[str, Json] = {"targets": [{"engine": one, "weight": draw(st.integers(1, 3))} for one in targets]}
    others = [one for one in models if one != name]
    rest: dict[str, st.SearchStrategy[Json]] = {
        "aliases": st.just([f"{name}-alias"]),
        "model": st.sampled_from(["org/x", "org/y"]),
        "policy": st.sampled_from(["round_robin", "weighted", "power_of_two", "prefix_affinity", "session_affinity"]),
        "fallbacks": st.lists(st.sampled_from(others), max_size=2, unique=True) if others else st.just([]),
        "max_in_flight": st.integers(1, 3),
        "extras": st.just("strip"),
        "timeouts": st.just({"idle": "7s"}),
        "unknown_parameters": st.just("reject"),
        "tools": st.just({"format": "hermes", "parse": "gateway"}),
    }
    chosen = draw(st.sets(st.sampled_from(sorted(rest))))
    return made | {key: draw(rest[key]) for key in sorted(chosen)}


@st.composite
def settings(draw: st.DrawFn) -> Settings:
    engines = draw(st.lists(st.sampled_from(ENGINES), min_size=1, unique=True))
    models = draw(st.lists(st.sampled_from(["m", "n"]), unique=True))
    return Settings.model_validate(
        {
            "engines": {name: draw(engine()) for name in engines},
            "models": {name: draw(model(name, engines, models)) for name in models},
            "server": draw(st.sampled_from([{}, {"max_body": "1MiB"}, {"cors_origins": ["https://a.example"]}])),
            "retry": draw(st.sampled_from([{}, {"attempts": 5}, {"budget": "50%"}])),
            "admission": draw(st.sampled_from([{}, {"queue": 3}, {"wait": "1s"}])),
        }
    )


def built(wanted: Settings, old: Plane | None = None) -> Plane:
    loop = StillLoop()  # type: ignore[abstract]  # what is missing is not needed
    return build_plane(wanted, loop, Meters() if old is None else old.meters, old=old)


@given(st.lists(settings(), min_size=2, max_size=4))
def test_a_reload_leads_to_what_a_restart_leads_to(edits: list[Settings]) -> None:
    plane = built(edits[0])
    for edit in edits[1:]:
        plane = built(edit, plane)

    assert differences(plane, built(edits[-1])) == {}


def can_be_written(edited: Settings) -> bool:
    """Whether a file could say so: not every edit leads to something that would be accepted."""
    try:
        tree = redacted_tree(edited)
        return settings_of(tree) is not None and not list(crosscheck(tree))
    except ForeignTreeError:
        return False


@given(st.data())
def test_the_same_holds_for_an_edit_of_any_key(data: st.DataObject) -> None:
    """For those of sections that the trees above leave out, too."""
    before = data.draw(trees())
    after = data.draw(edits(before))
    assume(can_be_written(after))

    assert differences(built(after, built(before)), built(after)) == {}


@given(settings(), settings())
def test_endpoints_that_are_still_there_are_the_same_ones(before: Settings, after: Settings) -> None:
    """With what runs on them, and what is known about them: load, health, breaker, connections."""
    first = built(before)
    leases = []
    for asked in first.asked.values():
        lease = asked.route.acquire(None, 100.0, lambda: 0.5)
        leases += [lease] if isinstance(lease, Lease) else []
    for link in first.engines.values():
        for _ in range(3):
            evidence.check_failed(link.engine, link.engine.endpoints[0], "it does not answer", 100.0)
    known = {name: dict(link.endpoints) for name, link in first.engines.items()}
    second = built(after, first)

    for name, link in second.engines.items():
        same_kind = name in before.engines and before.engines[name].kind is after.engines[name].kind
        here = {endpoint.url: (endpoint, known[name][endpoint].pool) for endpoint in known[name]} if same_kind else {}
        for number, endpoint in enumerate(link.engine.endpoints):
            if endpoint.url in here:
                assert (endpoint, link.endpoints[endpoint].pool) == here[endpoint.url]
                was_first = before.engines[name].urls[0] == endpoint.url
                assert (endpoint.state is EndpointState.DOWN) == was_first
            else:
                assert (endpoint.state, endpoint.in_flight) == (EndpointState.UNKNOWN, 0)
            assert endpoint.order == number
    for lease in leases:
        lease.end(SERVED, 101.0)
    assert {endpoint.in_flight for links in known.values() for endpoint in links} <= {0}


@given(st.lists(settings(), min_size=2, max_size=3))
def test_who_may_be_asked_is_who_serves_and_has_room(edits: list[Settings]) -> None:
    """A new limit holds at once, in both directions, whatever runs at that moment."""
    plane = built(edits[0])
    for edit in edits[1:]:
        for asked in plane.asked.values():
            asked.route.acquire(None, 100.0, lambda: 0.5)
        plane = built(edit, plane)
        for link in plane.engines.values():
            engine = link.engine
            engine.refresh(200.0)
            room = [one for one in engine.endpoints if one.in_flight < one.limit]
            assert engine.ready == room
            assert {one.max_in_flight for one in engine.endpoints} == {edit.engines[engine.name].max_in_flight}


def test_what_cannot_be_built_leaves_everything_as_it_is() -> None:
    """The old plane's engines change only when the new plane is complete."""
    url = URLS[0]
    first = Settings.model_validate(
        {"engines": {"e": {"kind": "vllm", "urls": [url]}}, "models": {"m": {"engine": "e"}}}
    )
    plane = built(first)
    before = dict(told(plane))
    # Nothing that the settings accept fails to be built, so the settings here are not ones that they would accept.
    broken = first.model_copy(
        update={
            "engines": {"e": first.engines["e"].model_copy(update={"urls": (url, URLS[1]), "max_in_flight": 1})},
            "models": {"m": first.models["m"].model_copy(update={"engine": "nobody"})},
        }
    )
    with pytest.raises(KeyError):
        built(broken, plane)

    assert dict(told(plane)) == before
