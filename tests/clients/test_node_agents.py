"""Agents on the OpenAI SDK for Node, with models of every tier 1 format whose raw text only the gateway reads."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping

import pytest

from engines.profile import EngineKind
from tests.clients.conftest import PATIENCE
from tests.clients.install import NODE, node
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT
from tests.support.process import clean_environment
from tests.support.raw_model import ANSWER, TIER_1, RawModel
from tests.support.scripted import ScriptedEngine, Talk
from tests.support.serving import Serving
from tests.unit.gateway.wire.toolcalls.renderers import FAMILIES, Calls

TURNS: tuple[Calls, ...] = (
    [("get_weather", {"city": "Paris"}), ("get_time", {})],
    [("get_weather", {"city": 'Oslo "北" {}'})],
)
RESULTS = ["21 degrees in Paris", "noon, asked with {}", '21 degrees in Oslo "北" {}']


@pytest.fixture(params=list(EngineKind), ids=lambda kind: kind.value)
async def gateway_url(request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """One engine of this kind, with a model of each format, behind the gateway."""
    kind = EngineKind(request.param)
    models = {form: RawModel(kind, *map(FAMILIES[form].render, TURNS)) for form in TIER_1}

    async def answer(talk: Talk) -> None:
        await models[talk.request.json["model"]](talk)

    engine = await ScriptedEngine().start()
    engine.on(CHAT, answer)
    serving = Serving(
        {
            "engines": {"e": {"kind": kind.value, "urls": [engine.url], "parser": "none"}},
            "models": {form: {"engine": "e", "tools": {"format": form}} for form in TIER_1},
        },
        "protocol",
    )
    await serving.start()
    yield f"http://127.0.0.1:{serving.port}/v1"
    await serving.stop()
    await engine.stop()


async def agents(url: str) -> Mapping[str, Json]:
    """What the SDK's runner has at the end, by model and mode."""
    script = await asyncio.create_subprocess_exec(
        node(),
        NODE / "agents.mjs",
        json.dumps({"base_url": url, "models": TIER_1}),
        env=clean_environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await asyncio.wait_for(script.communicate(), PATIENCE)
    assert script.returncode == 0, errors.decode()[-4000:]
    return dict(json.loads(out))


async def test_agents_of_three_turns(obstacle: str | None, gateway_url: str) -> None:
    """Two calls, their results, one call, its result, the answer: of each format, streamed and not."""
    assert obstacle is None
    report = await agents(gateway_url)
    assert len(report) == 2 * len(TIER_1)
    for name, gave in report.items():
        assert "raised" not in gave, f"{name}: {gave['raised']}"
        messages = gave["messages"]
        calls = [call for message in messages for call in message.get("tool_calls") or ()]
        made = [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]
        assert made == [call for turn in TURNS for call in turn], name
        results = [message for message in messages if message["role"] == "tool"]
        assert [message["content"] for message in results] == RESULTS, name
        assert [message["tool_call_id"] for message in results] == [call["id"] for call in calls], name
        assert len({call["id"] for call in calls}) == len(calls), name
        assert (messages[-1]["content"], gave["finish"]) == (ANSWER, "stop"), name
