"""What streams carry beside their text: usage, indices, log probabilities. Sent once, counted once."""

import json

import pytest

from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Client
from tests.support.json_type import Json
from tests.support.openai_bytes import CHAT, COMPLETIONS, DONE, STREAM, delta, deltas, event
from tests.support.scripted import ScriptedEngine, stream
from tests.support.sdk import openai_client
from tests.support.serving import Serving

USAGE = {"prompt_tokens": 7, "total_tokens": 12, "completion_tokens": 5}
USAGE_EVENT = event({"id": "chatcmpl-" + "0" * 32, "model": "org/m", "choices": [], "usage": USAGE})
ASKING = STREAM | {"stream_options": {"include_usage": True}}


def counted(serving: Serving) -> tuple[int, int]:
    meter = serving.meters.meter("m", "e")
    return meter.input_tokens, meter.output_tokens


async def events(client: Client, body: Json = ASKING, path: str = CHAT) -> list[Json]:
    """What the client hears, without `[DONE]`, which must be there."""
    await client.post(path, body)
    answer = await client.answer()
    assert answer.whole
    *said, last = answer.body.replace(b"data:{", b"data: {").removesuffix(b"\n\n").split(b"\n\n")
    assert last == b"data: [DONE]"
    return [json.loads(one.removeprefix(b"data: ")) for one in said]


@pytest.mark.parametrize(("before", "after"), [(b"data: ", b"data:"), (b"\n\n", b"\r\n\r\n")])
async def test_usage_is_counted_however_it_is_spelled(
    client: Client, engine: ScriptedEngine, serving: Serving, before: bytes, after: bytes
) -> None:
    """Without the blank after the colon, with other line ends."""
    engine.answer(stream(*(one.replace(before, after) for one in [*deltas("a", "b"), USAGE_EVENT, DONE])))
    said = await events(client)
    assert [one["usage"] for one in said if "usage" in one] == [USAGE]
    await serving.settled()
    assert counted(serving) == (7, 5)


async def test_usage_that_was_asked_for_comes_once(client: Client, engine: ScriptedEngine, serving: Serving) -> None:
    """After the text, and counted."""
    engine.answer(stream(*deltas("a", "b"), USAGE_EVENT, DONE))
    said = await events(client)
    assert [one["usage"] for one in said if "usage" in one] == [USAGE]
    assert said[-1]["choices"] == []
    await serving.settled()
    assert counted(serving) == (7, 5)


async def test_usage_beside_content_counts_once(client: Client, engine: ScriptedEngine, serving: Serving) -> None:
    """`continuous_usage_stats`: each event says how much it is up to now; the last one is how much it was."""
    texts = ["a", "b", "c"]
    told = [
        event(delta(text, usage={"prompt_tokens": 7, "total_tokens": 8 + at, "completion_tokens": 1 + at}))
        for at, text in enumerate(texts)
    ]
    last = event(delta(finish="stop", usage={"prompt_tokens": 7, "total_tokens": 10, "completion_tokens": 3}))
    engine.answer(stream(event(delta("", role="assistant")), *told, last, DONE))
    options = {"include_usage": True, "continuous_usage_stats": True}
    said = await events(client, STREAM | {"stream_options": options})
    assert "".join(one["choices"][0]["delta"].get("content", "") for one in said) == "abc"
    assert [one["usage"]["completion_tokens"] for one in said if "usage" in one] == [1, 2, 3, 3]
    await serving.settled()
    assert counted(serving) == (7, 3)


async def test_a_chunk_that_repeats_the_whole_text_is_passed_on(
    client: Client, engine: ScriptedEngine, serving: Serving
) -> None:
    """It may be what the model said; nobody here knows better. Without usage each event counts as a token."""
    engine.answer(stream(*deltas("Once", " upon", "Once upon a", " time"), DONE))
    said = await events(client)
    texts = [one["choices"][0]["delta"].get("content") for one in said]
    assert texts == ["", "Once", " upon", "Once upon a", " time", None]
    await serving.settled()
    assert counted(serving) == (0, len(said))


def probable(token: str) -> dict[str, Json]:
    return {"content": [{"token": token, "logprob": -0.25, "bytes": list(token.encode()), "top_logprobs": []}]}


def with_probabilities(*tokens: str) -> list[bytes]:
    """A stream of one token per event, each with its log probability."""
    made = [event(delta("", role="assistant"))]
    for token in tokens:
        document = delta(token)
        document["choices"][0]["logprobs"] = probable(token)
        made.append(event(document))
    return [*made, event(delta(finish="stop")), DONE]


TOKENS = ["Let", " me", " <", "think", "> about", " it"]


@pytest.mark.parametrize("kind", ["vllm", "trtllm", "triton"])
@pytest.mark.parametrize(
    "more",
    [{}, {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]}],
    ids=["plain", "tools"],
)
async def test_every_token_keeps_its_log_probabilities(
    gateway: Gateway, engine: ScriptedEngine, kind: str, more: dict[str, Json]
) -> None:
    """Whatever is read out of the text; the SDK adds them up to all six."""
    serving = await gateway(one_engine(engine, kind))
    engine.answer(stream(*with_probabilities(*TOKENS)))
    async with openai_client(serving) as sdk:
        create: Json = sdk.chat.completions.create
        choices = [
            choice
            async for one in await create(model="m", messages=STREAM["messages"], logprobs=True, stream=True, **more)
            for choice in one.choices
        ]
    assert "".join(choice.delta.content or "" for choice in choices) == "".join(TOKENS)
    tokens = [token.token for choice in choices if choice.logprobs for token in choice.logprobs.content or ()]
    assert tokens == TOKENS


async def test_interleaved_choices_keep_their_places(client: Client, engine: ScriptedEngine, serving: Serving) -> None:
    """Each choice's text is its own, and the usage is that of both."""
    told = [event(delta("", role="assistant", index=index)) for index in (0, 1)]
    told += [event(delta(text, index=index)) for text, index in (("a", 1), ("b", 0), ("c", 0), ("d", 1), ("e", 1))]
    told += [event(delta(finish="stop", index=1)), event(delta(finish="length", index=0)), USAGE_EVENT, DONE]
    engine.answer(stream(*told))
    said = await events(client, ASKING | {"n": 2})
    for index, text, reason in ((0, "bc", "length"), (1, "ade", "stop")):
        own = [choice for one in said for choice in one["choices"] if choice["index"] == index]
        assert "".join(choice["delta"].get("content", "") for choice in own) == text
        assert [choice["finish_reason"] for choice in own if choice["finish_reason"]] == [reason]
    await serving.settled()
    assert counted(serving) == (7, 5)
    assert serving.outcomes() == {"served": 1}


async def test_interleaved_completions_keep_their_places(client: Client, engine: ScriptedEngine) -> None:
    """The same for two prompts in one request."""

    def text(index: int, said: str, finish: str | None = None) -> bytes:
        choice = {"index": index, "text": said, "logprobs": None, "finish_reason": finish}
        return event({"id": "cmpl-" + "0" * 32, "model": "org/m", "choices": [choice]})

    engine.answer(stream(text(1, "x"), text(0, "a"), text(1, "y", "stop"), text(0, "b", "stop"), DONE))
    said = await events(client, {"model": "m", "prompt": ["p", "q"], "stream": True}, COMPLETIONS)
    for index, expected in ((0, "ab"), (1, "xy")):
        own = [choice for one in said for choice in one["choices"] if choice["index"] == index]
        assert "".join(choice["text"] for choice in own) == expected
