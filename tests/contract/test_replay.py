"""The comparison of running engines with the recordings, on simulated ones."""

import json

from engines.simulator import build_app, listening
from tests.contract.client import Answer
from tests.contract.replay import difference, differences, recorded
from tests.contract.test_simulators import counterpart

LLAMA = "--tokenizer <local> --tool-call-parser llama3 --lora-separator _lora_"


async def test_a_server_that_answers_as_recorded_has_no_difference() -> None:
    """Streams, whole answers and errors of the one kind and flags."""
    async with counterpart("triton", LLAMA) as port:
        found = [one async for one in differences("triton", LLAMA, "127.0.0.1", port, {})]
    assert found == []
    assert len(list(recorded("triton", LLAMA))) > 80


async def test_a_server_that_answers_otherwise_is_told_case_by_case() -> None:
    """Another parser, and a model by another name, which the replay asks for where it is told so."""
    async with listening(build_app("triton", ["other"])) as running:
        unknown = [one async for one in differences("triton", LLAMA, "127.0.0.1", running.port, {})]
        names = {"vllm_chat": "other"}
        known = [one async for one in differences("triton", LLAMA, "127.0.0.1", running.port, names)]
    assert len(known) < len(unknown)
    assert any(one.what.startswith("status ") for one in unknown)


def test_what_a_difference_says() -> None:
    """The members that are new, and those that are gone."""
    exchange = next(one for case, one in recorded("triton", LLAMA) if case == "chat_nonstream")
    changed = json.loads(json.dumps(exchange["json"]))
    changed["novel"] = changed.pop("object")
    answer = Answer(200, {}, json.dumps(changed).encode())

    assert difference(exchange, Answer(200, {}, json.dumps(exchange["json"]).encode())) is None
    assert difference(exchange, answer) == "+ .novel text; - .object 'chat.completion'"
    assert difference(exchange, Answer(503, {}, b"busy")) == "status 503 instead of 200: b'busy'"
