"""Every good answer that was recorded of an engine, sent through the gateway again: one OpenAI behaviour comes out.

What becomes of the members is compared closer where it is decided (`tests/unit/gateway/wire/shape/test_recordings.py`);
recorded errors have a file of their own.
"""

import base64
import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from openai.types import Completion, CreateEmbeddingResponse
from openai.types.chat import ChatCompletion
from pydantic import BaseModel

from engines.profile import EngineKind
from tests import contract
from tests.integration.conftest import Gateway
from tests.support.client import Answer, Client
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, COMPLETIONS, EMBEDDINGS, compact
from tests.support.scripted import ScriptedEngine, chunked, packets, reply, stream, stream_head

RECORDINGS = Path(contract.__file__).parent / "recordings"
FORMS: Mapping[str, type[BaseModel]] = {
    CHAT: ChatCompletion,
    COMPLETIONS: Completion,
    EMBEDDINGS: CreateEmbeddingResponse,
}
every_kind = pytest.mark.parametrize("kind", list(EngineKind), ids=lambda kind: kind.value)


def recorded(kind: EngineKind, *, streamed: bool) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """The exchanges that went well, of paths with an answer that OpenAI has too."""
    for line in (RECORDINGS / f"{kind.value}.jsonl").read_text().splitlines():
        case = json.loads(line)
        for exchange in case.get("exchanges", ()):
            good = exchange["status"] == 200 and exchange["path"] in FORMS and isinstance(exchange.get("body"), dict)
            if good and ("json" in exchange) is not streamed:
                yield case["case"], exchange


def settings(kind: EngineKind, engine: ScriptedEngine) -> dict[str, Json]:
    e: dict[str, Json] = {"kind": kind.value, "urls": [engine.url]}
    if kind is EngineKind.TRITON:
        e["embeddings"] = True
    vectors = {"engine": "e", "task": "embedding", "token_inputs": "pass"}
    return {"engines": {"e": e}, "models": {"m": {"engine": "e", "model": "theirs"}, "vectors": vectors}}


async def asked(client: Client, engine: ScriptedEngine, exchange: Mapping[str, Json]) -> Answer | None:
    """The answer to the recorded request; None where the gateway refuses it by itself, in the contract's words."""
    before = len(engine.requests)
    body = {name: value for name, value in exchange["body"].items() if value is not None}
    await client.post(exchange["path"], body | {"model": "vectors" if exchange["path"] == EMBEDDINGS else "m"})
    answer = await client.answer()
    if len(engine.requests) > before:
        return answer
    assert (answer.status, answer.error["type"]) == (400, "invalid_request_error")
    return None


def unpacked(text: str) -> list[float]:
    data = base64.b64decode(text, validate=True)
    return list(struct.unpack(f"<{len(data) // 4}f", data))


@every_kind
async def test_every_recorded_whole_answer_is_one_of_openai_s(
    gateway: Gateway, engine: ScriptedEngine, kind: EngineKind
) -> None:
    serving = await gateway(settings(kind, engine))
    served = 0
    async with await serving.connect() as client:
        for case, exchange in recorded(kind, streamed=False):
            engine.answer(reply(compact(exchange["json"])))
            answer = await asked(client, engine, exchange)
            if answer is None:
                continue
            served += 1
            assert answer.status == 200, case
            document = answer.json
            for vector in document["data"] if exchange["path"] == EMBEDDINGS else ():
                if exchange["body"].get("encoding_format") == "base64":  # the SDK's model has it unpacked
                    vector["embedding"] = unpacked(vector["embedding"])
            FORMS[exchange["path"]].model_validate(document)
            assert document["model"] == ("vectors" if exchange["path"] == EMBEDDINGS else "m"), case
            for choice in document.get("choices", ()):
                assert choice["finish_reason"] in {"stop", "length", "tool_calls", "function_call"}, case
            assert answer.header("x-turnout-engine") == "e"
    assert served > 30
    await serving.settled()
    assert set(serving.outcomes("m")) == {"served"}


def ends_well(exchange: Mapping[str, Json]) -> bool:
    """Whether a recorded stream was complete and without an error."""
    told = [json.loads(one[5:]) for one in exchange["events"] if one.startswith("data:") and "[DONE]" not in one]
    return exchange.get("complete", True) and not any("error" in one for one in told)


@every_kind
async def test_every_recorded_stream_ends_in_one_of_two_ways(
    gateway: Gateway, engine: ScriptedEngine, kind: EngineKind
) -> None:
    """With one `[DONE]`, one id, one name and a reason for each choice; or as an error that no client can miss."""
    serving = await gateway(settings(kind, engine))
    whole = broken = 0
    for case, exchange in recorded(kind, streamed=True):
        events = [one.encode() if one.endswith("\n\n") else one.encode() + b"\n\n" for one in exchange["events"]]
        cut = packets(stream_head() + b"".join(map(chunked, events)), fin=True)
        engine.answer(stream(*events) if exchange.get("complete", True) else cut)
        async with await serving.connect() as client:
            answer = await asked(client, engine, exchange)
        if answer is None:
            continue
        if ends_well(exchange):
            whole += 1
            check_stream(case, answer)
        else:
            broken += 1
            assert answer.status in {400, 502} or not answer.whole, case
            assert b"[DONE]" not in answer.body, case
    assert whole > 15
    assert broken > 1 or kind is EngineKind.VLLM  # whose errors in streams were recorded otherwise
    await serving.settled()


def check_stream(case: str, answer: Answer) -> None:
    assert answer.status == 200, (case, answer.body)
    assert answer.whole, (case, answer.body)
    *events, last = answer.events
    assert last == b"[DONE]", case
    assert b"[DONE]" not in events, case
    documents = [json.loads(one) for one in events]
    assert {one["model"] for one in documents} == {"m"}, case
    assert len({one["id"] for one in documents}) == 1, case
    reasons: dict[int, list[str]] = {}
    for choice in (choice for one in documents for choice in one["choices"]):
        reasons.setdefault(choice["index"], []).extend(filter(None, [choice.get("finish_reason")]))
    assert reasons, case
    assert all(len(given) == 1 for given in reasons.values()), (case, reasons)
