"""Tool calls for operators, over the admin API."""

import json
from collections.abc import Sequence

from tests.integration.conftest import Gateway
from tests.support.agent import ASKS, TOOLS
from tests.support.client import Answer
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT
from tests.support.scripted import ScriptedEngine, reply
from tests.support.serving import Serving


async def call(
    serving: Serving, method: str, path: str, body: Json = None, headers: Sequence[tuple[str, str]] = ()
) -> Answer:
    data = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", "content-type: application/json"]
    lines += [f"{name}: {value}" for name, value in headers]
    async with await serving.connect() as client:
        await client.send("\r\n".join([*lines, f"content-length: {len(data)}", "", ""]).encode() + data)
        return await client.answer()


def settings(engine: ScriptedEngine) -> Json:
    return {
        "engines": {
            "v": {"kind": "vllm", "urls": [engine.url]},
            "t": {"kind": "triton", "urls": [engine.url], "parser": "llama3"},
        },
        "models": {
            "m": {"targets": [{"engine": "v", "model": "org/Qwen3-Coder"}, {"engine": "t"}], "aliases": ["gpt-4o"]},
            "off": {"engine": "v", "tools": {"parse": "off", "format": "hermes"}},
            "vectors": {"engine": "v", "task": "embedding"},
        },
    }


async def test_who_reads_the_calls_of_each_model(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(settings(engine), whole=True)
    answer = await call(serving, "GET", "/admin/tools")

    assert answer.status == 200
    assert [(one["model"], one["engine"], one["reader"], one["format"], one["source"]) for one in answer.json] == [
        ("m", "v", "engine", "qwen3_xml", "name"),
        ("m", "t", "gateway", "llama3_json", "parser"),
        ("off", "v", "nobody", "hermes", "configuration"),
    ]
    assert answer.json[0]["why"] == "whether it has a tool parser is not known"


async def test_what_an_engine_says_about_itself_is_shown(gateway: Gateway, engine: ScriptedEngine) -> None:
    refusal = {"error": {"message": "requires --enable-auto-tool-choice and --tool-call-parser to be set"}}
    engine.on(CHAT, reply(refusal, status=400))
    only = settings(engine)
    only["models"]["m"] = {"engine": "v"}
    serving = await gateway(only, whole=True)
    async with await serving.connect() as client:
        await client.post(CHAT, {"model": "m", "messages": ASKS, "tools": TOOLS})
        await client.answer()
    (first, *_) = (await call(serving, "GET", "/admin/tools")).json

    assert (first["reader"], first["why"], first["format"]) == ("gateway", "it said that it has no tool parser", None)


async def test_a_text_is_parsed(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(settings(engine), whole=True)
    text = 'Well. <tool_call>\n{"name": "get_weather", "arguments": {"city": "Par'
    given = {"text": text, "format": "qwen3", "tools": TOOLS, "finish_reason": "length"}
    answer = await call(serving, "POST", "/admin/tools/parse", given)

    assert answer.status == 200
    parsed = answer.json
    (found,) = parsed["tool_calls"]
    assert (found["name"], found["arguments"], found["complete"]) == ("get_weather", '{"city": "Par', False)
    assert (parsed["content"].strip(), parsed["reasoning"], parsed["finish_reason"]) == ("Well.", None, "length")


async def test_what_cannot_be_parsed_is_refused(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(settings(engine), whole=True)
    unknown = await call(serving, "POST", "/admin/tools/parse", {"text": "x", "format": "hermez"})
    assert (unknown.status, unknown.error["param"]) == (400, "format")
    assert "hermes" in str(unknown.error["message"])
    for wrong in (
        {"text": "x"},
        {"text": "x" * 300_000, "format": "hermes"},
        {"text": "x", "format": "hermes", "a": 1},
    ):
        answer = await call(serving, "POST", "/admin/tools/parse", wrong)
        assert answer.status == 400
        assert answer.error


async def test_only_operators_may(gateway: Gateway, engine: ScriptedEngine) -> None:
    closed = settings(engine) | {"admin": {"token": "s3cret-token"}}
    serving = await gateway(closed, whole=True)
    assert (await call(serving, "GET", "/admin/tools")).status == 401
    assert (await call(serving, "POST", "/admin/tools/parse", {"text": "x", "format": "hermes"})).status == 401
    let_in = [("authorization", "Bearer s3cret-token")]
    assert (await call(serving, "GET", "/admin/tools", headers=let_in)).status == 200
