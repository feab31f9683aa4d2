"""Requests that no engine got are counted and logged under the model that they asked for."""

from structlog.testing import capture_logs

from tests.integration.conftest import Gateway, one_engine
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, EMBEDDINGS, HELLO
from tests.support.scripted import ScriptedEngine
from tests.support.serving import Serving


async def ask(serving: Serving, path: str, body: Json) -> int:
    async with await serving.connect() as client:
        await client.post(path, body)
        return (await client.answer()).status


async def test_a_model_without_an_endpoint_keeps_its_name(gateway: Gateway, engine: ScriptedEngine) -> None:
    """An alias counts for its model, and a model that others stand in for, for itself."""
    settings = one_engine(engine, kind="trtllm")
    settings["models"] = {"m": {"engine": "e", "aliases": ["gpt-4o"], "fallbacks": ["n"]}, "n": {"engine": "e"}}
    serving = await gateway(settings | {"server": {"access_log": True}}, whole=True)
    balance = serving.plane.engines["e"].engine
    balance.drain(0.0)
    with capture_logs() as logs:
        for name in ("m", "gpt-4o", "n"):
            assert await ask(serving, CHAT, HELLO | {"model": name}) == 503
        assert await ask(serving, EMBEDDINGS, {"model": "m", "input": "x"}) == 400
        assert serving.plane.journal is not None
        serving.plane.journal.flush()
    requests = [(line["model"], line["engine"], line["outcome"]) for line in logs if line["event"] == "request"]

    assert requests == [
        ("m", "", "unavailable"),
        ("m", "", "unavailable"),
        ("n", "", "unavailable"),
        ("m", "", "rejected"),
    ]
    assert serving.outcomes("m", "") == {"unavailable": 2, "rejected": 1}
    assert serving.outcomes("n", "") == {"unavailable": 1}
    assert serving.outcomes("", "") == {}


async def test_names_that_only_clients_know_make_no_series(serving: Serving) -> None:
    assert await ask(serving, CHAT, HELLO | {"model": "of-a-client"}) == 404
    assert await ask(serving, CHAT, b"{") == 400

    assert serving.outcomes("", "") == {"rejected": 2}
    assert serving.outcomes("of-a-client", "") == {}
