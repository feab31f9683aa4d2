"""What the log and the list of errors say about requests, and what they never do."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence

import pytest
import structlog
from structlog.testing import capture_logs

from gateway.logs.setup import QUIET
from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Answer
from tests.support.json_type import Json
from tests.support.keys import key_entry
from tests.support.openai_bytes import CHAT, DONE, HELLO, STREAM, completion, deltas
from tests.support.scripted import ScriptedEngine, reply, stream
from tests.support.serving import Serving

SECRET_WORDS = "the launch code is 0000"
PROMPT: dict[str, Json] = {"model": "m", "messages": [{"role": "user", "content": SECRET_WORDS}]}


async def ask(serving: Serving, body: Json, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    async with await serving.connect() as client:
        await client.post(CHAT, body, headers)
        return await client.answer()


async def call(serving: Serving, method: str, path: str, body: Json = None) -> Answer:
    data = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "host: localhost", "content-type: application/json"]
    async with await serving.connect() as client:
        await client.send("\r\n".join([*lines, f"content-length: {len(data)}", "", ""]).encode() + data)
        return await client.answer()


def lines(serving: Serving, logged: Sequence[Mapping[str, Json]]) -> list[Mapping[str, Json]]:
    assert serving.plane.journal is not None
    serving.plane.journal.flush()
    return [line for line in logged if line["event"] == "request"]


async def test_errors_are_listed_with_their_cause_and_without_what_was_asked(
    gateway: Gateway, engine: ScriptedEngine
) -> None:
    engine.answer(reply({"error": {"message": "out of memory at /opt/x.py", "type": "x", "code": 500}}, status=500))
    serving = await gateway(one_engine(engine, api_key="sk-engine"), whole=True)
    bearer = (("authorization", "Bearer sk-client"), ("x-request-id", "mine"))
    assert (await ask(serving, PROMPT, bearer)).status == 502
    assert (await ask(serving, {"model": "nobody\nERROR forged", "messages": []})).status == 404
    answer = await call(serving, "GET", "/admin/errors")

    newest, oldest = answer.json
    assert (oldest["request_id"], oldest["model"], oldest["engine"], oldest["status"]) == ("mine", "m", "e", 502)
    assert (oldest["code"], oldest["outcome"], oldest["operation"]) == ("engine_error", "failed", "chat")
    assert newest["code"] == "model_not_found"
    for secret in (SECRET_WORDS, "sk-engine", "sk-client", "/opt/x.py"):
        assert secret.encode() not in answer.body
    assert (await call(serving, "GET", "/admin/errors?limit=1")).json == [newest]
    assert (await call(serving, "GET", "/admin/errors?engine=e")).json == [oldest]
    assert (await call(serving, "GET", "/admin/errors?limit=0")).error["param"] == "limit"


async def test_a_stream_that_breaks_is_listed_too(gateway: Gateway, engine: ScriptedEngine) -> None:
    engine.answer(stream(*deltas("a", finish=None)))
    serving = await gateway(one_engine(engine), whole=True)
    assert (await ask(serving, STREAM)).events[-1] != DONE
    (shown,) = (await call(serving, "GET", "/admin/errors")).json

    assert (shown["status"], shown["outcome"], shown["code"]) == (200, "truncated", "stream_interrupted")


async def test_whose_request_was_refused_before_it_was_whole_is_told(gateway: Gateway, engine: ScriptedEngine) -> None:
    """By the name of the key, as for requests that were served."""
    keys = [key_entry("team-a", "sk-a")]
    settings = one_engine(engine, server={"max_body": 1024}) | {"keys": keys, "logs": {"requests": "errors"}}
    serving = await gateway(settings, whole=True)
    with capture_logs() as logged:
        for body in (HELLO | {"user": "x" * 2000}, HELLO | {"model": "nobody"}):
            assert (await ask(serving, body, (("authorization", "Bearer sk-a"),))).status in (404, 413)
        found = lines(serving, logged)

    assert [(line["status"], line["key"]) for line in found] == [(413, "team-a"), (404, "team-a")]


async def test_only_the_requests_that_are_wanted_have_a_line(gateway: Gateway, engine: ScriptedEngine) -> None:
    """With their tokens; those that failed with the reason."""
    engine.answer(reply(completion(usage={"prompt_tokens": 7, "completion_tokens": 9, "total_tokens": 16})))
    for which, wanted in (("off", []), ("errors", [404]), ("all", [200, 404]), ("0%", [404])):
        serving = await gateway(one_engine(engine) | {"logs": {"requests": which}}, whole=True)
        with capture_logs() as logged:
            await ask(serving, HELLO)
            await ask(serving, HELLO | {"model": "nobody"})
            found = lines(serving, logged)
        assert [line["status"] for line in found] == wanted
        assert all(line["code"] == "model_not_found" for line in found if line["status"] == 404)
        if which == "all":
            assert (found[0]["input_tokens"], found[0]["output_tokens"]) == (7, 9)


@pytest.mark.parametrize("shown", [False, True])
async def test_a_prompt_is_in_the_log_only_if_its_model_asks_for_that(
    gateway: Gateway, engine: ScriptedEngine, shown: bool
) -> None:
    engine.answer(reply(completion()))
    settings = one_engine(engine) | {"logs": {"requests": "all"}}
    settings["models"]["m"]["log_prompts"] = shown
    serving = await gateway(settings, whole=True)
    with capture_logs() as logged:
        await ask(serving, PROMPT)
        await ask(serving, PROMPT | {"messages": [{"role": "user", "content": SECRET_WORDS + "e" * 5000}]})
        await ask(serving, PROMPT | {"model": "same"})
        found = lines(serving, logged)

    prompts = [line.get("prompt", "") for line in found]
    assert [SECRET_WORDS in prompt for prompt in prompts] == [shown, shown, False]
    if shown:
        assert json.loads(prompts[0]) == PROMPT["messages"]
        assert len(prompts[1]) == 2001
        assert prompts[1].endswith("e…")


@pytest.fixture
def restored() -> Iterator[None]:
    """Puts the process's logging back as it was."""
    names = ["", *QUIET]
    before = {name: logging.getLogger(name).level for name in names}
    yield
    for name, level in before.items():
        logging.getLogger(name).setLevel(level)
    structlog.reset_defaults()


@pytest.mark.usefixtures("restored")
async def test_the_level_of_the_log_is_changed_by_operators(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine), whole=True)
    before = (await call(serving, "GET", "/admin/log-level")).json
    changed = await call(serving, "PUT", "/admin/log-level", {"level": "debug"})
    assert changed.json == (await call(serving, "GET", "/admin/log-level")).json == {"level": "debug"}
    assert (await call(serving, "PUT", "/admin/log-level", before)).json == before
    refused = await call(serving, "PUT", "/admin/log-level", {"level": "loud"})

    assert (refused.status, refused.error["param"]) == (400, "level")
