"""vLLM's tokenizer paths, for models of every task."""

import pytest

from engines.profile import EngineKind
from engines.simulator import build_app, start
from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Client
from tests.support.scripted import ScriptedEngine, reply
from tests.support.serving import Serving

TOKENIZE, DETOKENIZE = "/tokenize", "/detokenize"
COUNTED = b'{"count":5,"max_model_len":1024,"tokens":[446,330,381,78,70],"token_strs":null}'


@pytest.mark.parametrize("model", ["m", "vectors"])
async def test_a_text_is_counted_by_the_models_own_engine(
    client: Client, serving: Serving, engine: ScriptedEngine, model: str
) -> None:
    engine.on(TOKENIZE, reply(COUNTED))
    await client.post(TOKENIZE, {"model": model, "prompt": "Hello world"})
    answer = await client.answer()
    meter = serving.meters.meter(model, "e")

    assert answer.body == COUNTED
    assert engine.requests[0].json == {"model": f"org/{model}", "prompt": "Hello world"}
    assert (meter.input_tokens, meter.output_tokens) == (0, 0)


async def test_ids_become_a_text(client: Client, engine: ScriptedEngine) -> None:
    engine.on(DETOKENIZE, reply(b'{"prompt":"FPZ"}'))
    await client.post(DETOKENIZE, {"model": "m", "tokens": [40, 50, 60]})

    assert (await client.answer()).json == {"prompt": "FPZ"}


@pytest.mark.parametrize("path", [TOKENIZE, DETOKENIZE])
@pytest.mark.parametrize("kind", ["trtllm", "triton"])
async def test_an_engine_without_the_path_is_a_clear_refusal(
    gateway: Gateway, engine: ScriptedEngine, kind: str, path: str
) -> None:
    serving = await gateway(one_engine(engine, kind))
    async with await serving.connect() as client:
        await client.post(path, {"model": "m", "prompt": "x"})
        answer = await client.answer()

    assert answer.status == 400
    assert answer.error["message"] == f"The engine that serves 'm' has no {path} endpoint."


async def test_a_model_is_needed(client: Client, engine: ScriptedEngine) -> None:
    """vLLM would take its first one."""
    await client.post(TOKENIZE, {"prompt": "x"})
    answer = await client.answer()

    assert (answer.status, answer.error["param"]) == (400, "model")


async def test_on_a_simulated_engine(gateway: Gateway) -> None:
    engine = await start(build_app(EngineKind.VLLM, ["tiny", "minilm:embedding"]))
    serving = await gateway(
        {
            "engines": {"e": {"kind": "vllm", "urls": [engine.url]}},
            "models": {"chat": {"engine": "e", "model": "tiny"}, "minilm": {"engine": "e", "task": "embedding"}},
        }
    )
    lengths = []
    async with await serving.connect() as client:
        for model in ("chat", "minilm"):
            await client.post(TOKENIZE, {"model": model, "prompt": "Hello world"})
            lengths.append((await client.answer()).json["max_model_len"])
        await client.post(DETOKENIZE, {"model": "chat", "tokens": [1, 999_999_999]})
        text = await client.answer()

    assert lengths == [4096, 256]
    assert text.json == {"prompt": "<1>"}
    await engine.stop()
