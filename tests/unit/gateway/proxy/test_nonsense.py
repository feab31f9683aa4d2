"""An engine may say anything: a member of the wrong type breaks nothing, and every answer ends."""

import copy
import itertools
import json
from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.proxy.protocol import GatewayProtocol
from tests.performance.rig import Counter, Rig
from tests.performance.scenarios import HEAD, MODEL, answer, chat, chunk
from tests.support.json_type import Json

TOOL: Final[Json] = {
    "type": "function",
    "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}},
}
USAGE: Final[Json] = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
CALL: Final[Json] = {
    "index": 0,
    "id": "call_1",
    "type": "function",
    "function": {"name": "f", "arguments": '{"a":"b"}'},
}
DELTAS: Final[list[tuple[dict[str, Json], str | None]]] = [
    ({"role": "assistant", "content": ""}, None),
    ({"content": "hi <th"}, None),
    ({"content": "ere"}, None),
    ({"reasoning": "thought"}, None),
    ({"tool_calls": [CALL]}, None),
    ({"tool_calls": [{"index": 0, "function": {"arguments": ""}}]}, None),
    ({}, "tool_calls"),
]
nonsense = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2) | st.floats(allow_nan=False) | st.sampled_from(["", "stop", "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["content", "name", "a"]), inner),
    max_leaves=3,
)


class Line(Counter):
    """A transport whose connection may end."""

    def close(self) -> None:
        """The gateway closes."""

    def abort(self) -> None:
        """The gateway cuts."""

    def can_write_eof(self) -> bool:
        return False


def places(value: Json, above: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The way to every member and item."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in inner:
        yield (*above, key)
        yield from places(child, (*above, key))


def spoiled(draw: st.DrawFn, value: dict[str, Json]) -> dict[str, Json]:
    """The same with one member exchanged for nonsense."""
    made = copy.deepcopy(value)
    *way, last = draw(st.sampled_from(list(places(made))))
    at: Json = made
    for key in way:
        at = at[key]
    at[last] = draw(nonsense)
    return made


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    base: dict[str, Json] = {"id": "chatcmpl-0123456789abcdef", "object": "chat.completion.chunk", "created": 1}
    events: list[dict[str, Json]] = [
        base | {"model": MODEL, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        for delta, reason in DELTAS
    ]
    events.append(base | {"model": MODEL, "choices": [], "usage": USAGE})
    for at in draw(st.sets(st.integers(0, len(events) - 1), min_size=1, max_size=2)):
        events[at] = spoiled(draw, events[at])
    spelled = [chunk(b"data: %s\n\n" % json.dumps(event).encode()) for event in events]
    return b"".join([HEAD, *spelled, chunk(b"data: [DONE]\n\n"), b"0\r\n\r\n"])


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    message: Json = {"role": "assistant", "content": "hi", "reasoning": None, "tool_calls": [CALL]}
    body: dict[str, Json] = {
        "id": "chatcmpl-0123456789abcdef",
        "object": "chat.completion",
        "created": 1700000000,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": USAGE,
    }
    return answer(spoiled(draw, body))


KINDS = ("vllm", "trtllm", "triton")
READERS = ("engine", "gateway", "off")


@pytest.mark.parametrize(("kind", "reader"), list(itertools.product(KINDS, READERS)))
@given(said=st.data(), streamed=st.booleans(), tools=st.booleans(), form=st.sampled_from(["hermes", "llama3_json"]))
@settings(max_examples=60)
def test_nonsense_of_an_engine_breaks_nothing(
    kind: str, reader: str, said: st.DataObject, streamed: bool, tools: bool, form: str
) -> None:
    rig = Rig(
        {
            "engines": {"engine": {"kind": kind, "urls": ["http://10.0.0.1:8000"]}},
            "models": {MODEL: {"engine": "engine", "tools": {"format": form, "parse": reader}}},
        }
    )
    client = rig.client()
    client.transport = line = Line()
    engine = rig.connect_next_engine()
    engine.transport = Line()
    client.data_received(chat(MODEL, 20, stream=streamed, **({"tools": [TOOL]} if tools else {})))
    if engine.listener is None:  # the profile refuses this request
        assert line.written
        return
    engine.data_received(said.draw(streams() if streamed else answers()))

    assert line.written
    assert isinstance(client, GatewayProtocol)
    assert client.exchange is None
    assert all(endpoint.in_flight == 0 for endpoint in rig.plane.endpoints)
