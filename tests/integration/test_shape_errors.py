"""Every error answer that was recorded of an engine, as the gateway's client gets it, asked for whole and streamed."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.profile import EngineKind
from tests import contract
from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Answer
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, COMPLETIONS, EMBEDDINGS, HELLO
from tests.support.scripted import ScriptedEngine, reply

RECORDINGS = Path(contract.__file__).parent / "recordings"
BODIES: dict[str, dict[str, Json]] = {
    CHAT: HELLO,
    COMPLETIONS: {"model": "m", "prompt": "hello"},
    EMBEDDINGS: {"model": "vectors", "input": "hello"},
}
INSIDE = re.compile(
    r"Traceback|File \"|/opt/|/usr/|site-packages|localhost|127\.0\.0\.1|InferenceResponse|\('|<class|\{'type'|"
    r"NoneType|org/m|org/vectors"
)
"""What no client may read: places, Python's spellings of values, the engine's own name of the model."""


def recorded(kind: EngineKind) -> Iterator[tuple[str, str, int, bytes]]:
    """Case, path, status and body."""
    for line in (RECORDINGS / f"{kind.value}.jsonl").read_text().splitlines():
        case = json.loads(line)
        for exchange in case.get("exchanges", ()):
            if exchange["status"] >= 400 and exchange["path"] in BODIES:
                body = exchange["json"] if "json" in exchange else exchange.get("text", "")
                data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
                yield case["case"], exchange["path"], exchange["status"], data


def expected_status(engine_s: int, answer: Answer) -> set[int]:
    """The client's 4xx stay 4xx, the engine's mistakes are 502; some of each hide behind the other's status."""
    code = answer.error["code"]
    if code == "model_not_found":
        return {404}
    if code == "engine_error":
        return {502}
    assert answer.error["type"] == "invalid_request_error"
    return {400, 404} if engine_s in (404, 405) else {413} if engine_s == 413 else {400}


@pytest.mark.parametrize("kind", list(EngineKind), ids=lambda kind: kind.value)
async def test_every_recorded_error_has_the_one_shape(
    gateway: Gateway, engine: ScriptedEngine, kind: EngineKind
) -> None:
    serving = await gateway(one_engine(engine, kind.value))
    kinds = set()
    async with await serving.connect() as client:
        for case, path, status, body in recorded(kind):
            if path == EMBEDDINGS and kind is not EngineKind.VLLM:
                continue
            engine.answer(reply(body, status=status))
            for stream in (False, True)[: 1 if path == EMBEDDINGS else 2]:
                await client.post(path, BODIES[path] | ({"stream": True} if stream else {}))
                answer = await client.answer()
                assert answer.whole, case
                assert answer.header("content-type") == "application/json", case
                assert answer.status in expected_status(status, answer), (case, answer.body)
                assert not INSIDE.search(answer.error["message"]), (case, answer.body)
                assert len(answer.error["message"]) < 2000, case
                if status == 401:  # the engine refused the gateway, not the client
                    assert (answer.status, answer.header("x-should-retry")) == (502, "false"), case
                kinds.add((answer.status, answer.error["code"]))
    assert {(400, None), (502, "engine_error")} <= kinds
    assert (404, "model_not_found") in kinds or kind is EngineKind.TRTLLM  # which checks no names


@pytest.mark.parametrize("kind", list(EngineKind), ids=lambda kind: kind.value)
@pytest.mark.parametrize("stream", [False, True])
async def test_a_busy_engine_is_told_with_the_time_to_come_again(
    gateway: Gateway, engine: ScriptedEngine, kind: EngineKind, stream: bool
) -> None:
    """vLLM's full queue (recording `queue_full`), and what any proxy before an engine may say."""
    full = {"message": "The engine is currently busy and cannot accept new requests.", "type": "Service Unavailable"}
    serving = await gateway(one_engine(engine, kind.value))
    async with await serving.connect() as client:
        for status in (503, 429):
            engine.answer(reply({"error": full | {"param": None, "code": status}}, status=status))
            await client.post(CHAT, HELLO | {"stream": stream})
            answer = await client.answer()
            assert answer.status == status
            assert int(answer.header("retry-after") or 0) >= 1
            assert answer.header("x-should-retry") == "true"
            assert answer.error["type"] == ("rate_limit_error" if status == 429 else "server_error")


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
async def test_a_prompt_that_is_too_long_has_openai_s_code(gateway: Gateway, engine: ScriptedEngine, path: str) -> None:
    serving = await gateway(one_engine(engine))
    found = 0
    async with await serving.connect() as client:
        for case, its_path, status, body in recorded(EngineKind.VLLM):
            if "too_long" not in case or its_path != path:
                continue
            found += 1
            engine.answer(reply(body, status=status))
            await client.post(path, BODIES[path])
            answer = await client.answer()
            assert (answer.status, answer.error["code"]) == (400, "context_length_exceeded"), answer.body
    assert found
