"""Simulated engines answer recorded requests as the real servers did: status, members, error bodies, stream events."""

import functools
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from engines.simulator import build_app, listening
from tests.contract import cases
from tests.contract.client import Answer, send
from tests.contract.metrics import families
from tests.contract.shapes import by_choice, collapsed, event_shape, said, shape, without

FOLDER = Path(__file__).parent / "recordings"
FEW_FAMILIES = 10
ENGINES = ("vllm", "trtllm", "triton")


@functools.cache
def recorded(engine: str) -> tuple[cases.Scripts, tuple[Mapping[str, Any], ...]]:
    lines = [json.loads(line) for line in (FOLDER / f"{engine}.jsonl").read_text().splitlines()]
    scripts = lines.pop(0)["scripts"] if "scripts" in lines[0] else {}
    return scripts, tuple(lines)


def compared() -> Iterator[Any]:
    for engine in ENGINES:
        for case in recorded(engine)[1]:
            if case["case"] not in cases.OUT_OF_SCOPE[engine]:
                yield pytest.param(engine, case, id=f"{engine}-{case['case']}")


@asynccontextmanager
async def counterpart(engine: str, server: str) -> AsyncIterator[int]:
    """The simulated server that stands for a recorded one; its port."""
    set_up = cases.servers(engine, recorded(engine)[0])[server]
    app = build_app(engine, set_up.models, api_keys=set_up.api_keys)
    async with listening(app) as running:
        yield running.port


@pytest.mark.parametrize(("engine", "case"), list(compared()))
async def test_answers_as_recorded(engine: str, case: Mapping[str, Any]) -> None:
    """The simulated engine's answer has the recorded one's shape."""
    assert case["exchanges"], "a case without a request belongs into OUT_OF_SCOPE"
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(counterpart(engine, case["server"]))
        for exchange in case["exchanges"]:
            answer = await send(port, exchange)
            assert answer.status == exchange["status"], answer.body
            assert {name: answer.headers.get(name) for name in exchange["headers"]} == headers(exchange, port)
            compare(engine, case, exchange, answer)


def headers(exchange: Mapping[str, Any], port: int) -> Mapping[str, str]:
    expected = dict(exchange["headers"])
    if "location" in expected:
        expected["location"] = f"http://engine{expected['location'].partition('18341')[2]}"
    return expected


def compare(engine: str, case: Mapping[str, Any], exchange: Mapping[str, Any], answer: Answer) -> None:
    if "events" in exchange:
        compare_streams(engine, case, exchange, answer)
    elif "families" in exchange:
        compare_metrics(exchange["families"], families(answer.body.decode()))
    elif "json" in exchange:
        ignored = cases.IGNORED.get(case["server"], frozenset())
        expected, found = without(exchange["json"], ignored), without(json.loads(answer.body), ignored)
        assert shape(found) == shape(expected)
        assert case["case"] in cases.OTHER_TEXT or texts(found) == texts(expected)
    else:
        assert answer.body.decode() == exchange["text"]


def compare_metrics(expected: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """The simulator has some of the families, with the recorded types and labels; some recordings keep a few only."""
    if len(expected) < FEW_FAMILIES:
        found = {name: found[name] for name in expected if name in found}
    else:
        assert len(found) > 5
    assert found == {name: expected.get(name) for name in found}


def compare_streams(engine: str, case: Mapping[str, Any], exchange: Mapping[str, Any], answer: Answer) -> None:
    ignored = cases.IGNORED.get(case["server"], frozenset())
    assert answer.complete == exchange["complete"]
    if engine == "vllm":
        found, expected = by_choice(answer.chunks), by_choice(exchange["events"])
        assert collapsed(found, ignored) == collapsed(expected, ignored)
    else:
        assert [event_shape(raw) for raw in answer.chunks] == [event_shape(raw) for raw in exchange["events"]]
        assert case["case"] in cases.OTHER_TEXT or said(answer.chunks) == exchange["said"]


def texts(value: object) -> list[Any]:
    """What the answer says: content, reasoning, calls."""
    out = []
    for choice in (value.get("choices") if isinstance(value, dict) else None) or ():
        message = choice.get("message") or {"content": choice.get("text")}
        calls = [call["function"] for call in message.get("tool_calls") or ()]
        out.append((message.get("content"), message.get("reasoning"), message.get("reasoning_content"), calls))
    return out


@pytest.mark.parametrize("engine", ENGINES)
def test_every_case_is_compared_or_excused(engine: str) -> None:
    """Every excuse has a recording and a reason."""
    names = {case["case"] for case in recorded(engine)[1]}

    assert set(cases.OUT_OF_SCOPE[engine]) - names == set()
    assert [name for name, reason in cases.OUT_OF_SCOPE[engine].items() if not reason] == []
    assert len(cases.OUT_OF_SCOPE[engine]) <= 0.2 * len(names)
