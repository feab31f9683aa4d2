"""Embeddings of simulated engines."""

import base64
import json
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.simulator import SimulatedModel, Task
from engines.simulator.vectors import packed, vector
from tests.contract.client import send
from tests.unit.engines.simulator.wire import engine, request

MODEL = SimulatedModel("embed", Task.EMBEDDING)
PATH = "/v1/embeddings"


@given(st.text(max_size=40), st.integers(1, 512))
def test_vectors_have_unit_length_and_repeat(text: str, dimensions: int) -> None:
    """The same text gives the same vector; base64 holds the same float32 numbers."""
    numbers = vector(text, dimensions)
    assert len(numbers) == dimensions
    assert math.isclose(math.sqrt(math.fsum(number**2 for number in numbers)), 1.0, rel_tol=1e-5)
    assert numbers == vector(text, dimensions)
    assert list(struct.unpack(f"<{dimensions}f", base64.b64decode(packed(numbers)))) == numbers


def test_different_texts_have_different_vectors() -> None:
    """Also text and token ids."""
    assert len({tuple(vector(value, 8)) for value in ("a", "b", "", (1, 2), (2, 1))}) == 5


async def test_vllm_embeds_lists_in_order() -> None:
    """A list gives one vector for each input, 384 numbers long; each equals the input's own."""
    async with engine("vllm", models=[MODEL]) as running:
        both, one = [
            json.loads((await send(running.port, request(PATH, {"model": "embed", "input": given}))).body)
            for given in (["a", "b"], "b")
        ]
    assert [entry["index"] for entry in both["data"]] == [0, 1]
    assert both["data"][1]["embedding"] == one["data"][0]["embedding"]
    assert len(one["data"][0]["embedding"]) == 384


async def test_one_server_may_have_both_tasks() -> None:
    """Chat and embedding models side by side; each path knows the names of its own task only."""
    async with engine("vllm", models=["talker", "minilm:embedding"]) as running:
        good = await send(running.port, request(PATH, {"model": "minilm", "input": "x"}))
        wrong = await send(running.port, request(PATH, {"model": "talker", "input": "x"}))
    assert (good.status, wrong.status) == (200, 404)


async def test_trtllm_has_no_embeddings() -> None:
    """The path does not exist on a chat server, and a server without a chat model cannot be built."""
    async with engine("trtllm") as running:
        assert (await send(running.port, request(PATH, {"model": "tiny", "input": "x"}))).status == 404
    with pytest.raises(ValueError, match="chat model"):
        async with engine("trtllm", models=[MODEL]):
            pass
