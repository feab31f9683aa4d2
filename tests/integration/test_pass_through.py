"""What is not the gateway's to change goes through byte for byte, both ways."""

import json

import pytest

from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Client
from tests.support.json_type import Json
from tests.support.openai_bytes import (
    CHAT,
    COMPLETIONS,
    DONE,
    EMBEDDINGS,
    HELLO,
    ID,
    STREAM,
    compact,
    completion,
    delta,
    deltas,
    event,
)
from tests.support.scripted import ScriptedEngine, chunked, packets, reply, stream, stream_head, whole
from tests.support.serving import Serving

ODD = (
    b'{ "model" : "same",\n\t"messages":[{"role":"user","content":"h\\u00e9 \\ud83d\\ude00 \xe5\x8c\x97 \\/ "}],'
    b'"temperature":1.0e0,"seed":12345678901234567890,"top_p":0.10,"max_tokens" : 5 }'
)


async def test_a_request_that_needs_no_change_reaches_the_engine_as_it_was(
    client: Client, engine: ScriptedEngine
) -> None:
    engine.answer(reply(completion(model="same")))
    await client.post(CHAT, ODD)

    assert (await client.answer()).status == 200
    assert engine.requests[0].body == ODD


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
async def test_a_body_of_nothing_but_a_model_is_the_engines_to_judge(
    client: Client, engine: ScriptedEngine, path: str
) -> None:
    """The gateway expects neither `messages` nor `prompt`: they may be called otherwise one day."""
    engine.answer(reply(completion(model="same")))
    await client.post(path, {"model": "same", "input_ids": [1]})

    assert (await client.answer()).status == 200
    assert engine.requests[0].json["model"] == "same"


async def test_a_renamed_model_leaves_every_other_member_as_it_was(client: Client, engine: ScriptedEngine) -> None:
    engine.answer(reply(completion()))
    await client.post(CHAT, ODD.replace(b'"same"', b'"gpt-4o"'))

    assert (await client.answer()).status == 200
    sent = engine.requests[0].body
    assert json.loads(sent) == json.loads(ODD) | {"model": "org/m"}
    for member in (b'"h\\u00e9 \\ud83d\\ude00 \xe5\x8c\x97 \\/ "', b"1.0e0", b"12345678901234567890", b"0.10"):
        assert member in sent
    assert engine.requests[0].header("content-length") == str(len(sent)).encode()


ANSWERS = {
    "compact": compact(completion(model="same")),
    "nulls and unknown members": compact(completion(model="same", kv_transfer_params=None, x={"y": [1.0, 1e5]})),
    "pretty": json.dumps(completion(model="same"), indent=2).encode(),
    "escapes": compact(completion("北 😀", model="same")).replace("北".encode(), b"\\u5317"),
    "big numbers": compact(completion(model="same", n=0)).replace(b'"n":0', b'"n":1.10e400'),
    "blanks around": b"\r\n " + compact(completion(model="same")) + b"\n",
}


@pytest.mark.parametrize("body", [body for name, body in ANSWERS.items() if name in ("compact", "escapes")])
async def test_an_answer_that_needs_no_change_comes_as_it_was(
    client: Client, engine: ScriptedEngine, body: bytes
) -> None:
    engine.answer(reply(body))
    await client.post(CHAT, HELLO | {"model": "same"})
    answer = await client.answer()

    assert answer.body == body
    assert answer.header("content-type") == "application/json"


@pytest.mark.parametrize("body", ANSWERS.values(), ids=ANSWERS)
async def test_an_answer_keeps_its_members(client: Client, engine: ScriptedEngine, body: bytes) -> None:
    engine.answer(reply(body))
    await client.post(CHAT, HELLO | {"model": "same"})

    assert (await client.answer()).json == json.loads(body)


@pytest.mark.parametrize("asked", ["m", "gpt-4o"])
async def test_a_whole_answer_names_the_model_that_was_asked_for(
    client: Client, engine: ScriptedEngine, asked: str
) -> None:
    engine.answer(reply(completion()))
    await client.post(CHAT, HELLO | {"model": asked})

    assert (await client.answer()).json == completion(model=asked)
    assert engine.requests[0].json["model"] == "org/m"


@pytest.mark.parametrize("asked", ["m", "gpt-4o"])
async def test_every_chunk_names_the_model_that_was_asked_for(
    client: Client, engine: ScriptedEngine, asked: str
) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "total_tokens": 5, "completion_tokens": 2}}
    events = [*deltas("a", '"model":"org/m"', "c"), event(delta() | usage)]
    engine.answer(stream(*events, DONE))
    await client.post(CHAT, STREAM | {"model": asked, "stream_options": {"include_usage": True}})
    answer = await client.answer()

    chunks = [json.loads(data) for data in answer.events[:-1]]
    assert answer.events[-1] == b"[DONE]"
    assert chunks == [json.loads(sent[6:]) | {"model": asked} for sent in events]


@pytest.mark.parametrize(
    "made", ["", "cmpl-0123456789abcdef0123456789abcdef", "chatcmpl-3", "7", None, "chatcmpl-" + "é" * 16], ids=repr
)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_ids_have_openai_form_and_are_unique(
    client: Client, engine: ScriptedEngine, made: Json, streamed: bool
) -> None:
    events = [event(json.loads(sent[6:]) | {"id": made}) for sent in deltas("a")]
    engine.answer(stream(*events, DONE) if streamed else reply(completion(answer_id=made)))
    seen: list[str] = []
    for _ in range(2):
        await client.post(CHAT, HELLO | {"stream": streamed})
        answer = await client.answer()
        ids = {json.loads(data)["id"] for data in answer.events[:-1]} if streamed else {answer.json["id"]}
        assert len(ids) == 1
        seen += ids
    for answer_id in seen:
        assert answer_id.startswith("chatcmpl-")
        assert len(answer_id) >= len("chatcmpl-") + 16
    if made is None or "é" not in made:
        assert len(set(seen)) == 2


async def test_an_id_of_openai_form_stays(client: Client, engine: ScriptedEngine) -> None:
    engine.answer(stream(*deltas("a"), DONE))
    await client.post(CHAT, STREAM)

    assert {json.loads(data)["id"] for data in (await client.answer()).events[:-1]} == {ID}


async def test_completions_have_ids_of_their_own_form(client: Client, engine: ScriptedEngine) -> None:
    engine.answer(reply({"id": "42", "object": "text_completion", "model": "org/m", "choices": []}))
    await client.post(COMPLETIONS, {"model": "m", "prompt": "x"})
    answer = (await client.answer()).json

    assert answer["id"].startswith("cmpl-")
    assert answer["model"] == "m"


async def test_embeddings_keep_the_id_they_have(client: Client, engine: ScriptedEngine) -> None:
    body = {
        "id": "embd-1",
        "object": "list",
        "model": "org/vectors",
        "data": [{"object": "embedding", "index": 0, "embedding": "AACAPwAAAEA="}],
        "usage": {"prompt_tokens": 1, "total_tokens": 1},
    }
    engine.answer(reply(body))
    request = {"model": "vectors", "input": ["x"], "encoding_format": "base64"}
    await client.post(EMBEDDINGS, request)

    assert (await client.answer()).json == body | {"model": "vectors"}
    assert engine.requests[0].json == request | {"model": "org/vectors"}


async def test_an_omitted_encoding_format_stays_omitted(client: Client, engine: ScriptedEngine) -> None:
    engine.answer(reply({"object": "list", "model": "org/vectors", "data": []}))
    await client.post(EMBEDDINGS, {"model": "vectors", "input": "x"})

    assert (await client.answer()).status == 200
    assert engine.requests[0].json == {"model": "org/vectors", "input": "x"}


async def test_a_stream_that_needs_no_change_comes_as_it_was(client: Client, engine: ScriptedEngine) -> None:
    extras: dict[str, Json] = {"token_ids": [1, 2], "prompt_logprobs": None, "service_tier": None}
    events = [
        event(delta("", role="assistant", model="same", prompt_token_ids=None)),
        event(delta("北😀", model="same", **extras)),
        event(delta("a", model="same", index=1)),
        event(delta(finish="stop", model="same", stop_reason=None)),
        event(delta(finish="length", model="same", index=1)),
    ]
    engine.answer(stream(*events, DONE))
    await client.post(CHAT, STREAM | {"model": "same", "n": 2})
    answer = await client.answer()

    assert answer.whole
    assert answer.body == b"".join([*events, DONE])
    assert answer.header("content-type") == "text/event-stream; charset=utf-8"


async def test_a_large_answer_in_many_packets_is_whole(client: Client, engine: ScriptedEngine) -> None:
    body = compact(completion("北" * 200_000, model="same"))
    data = whole(body)
    parts = [data[at : at + 10_007] for at in range(0, len(data), 10_007)]
    engine.answer(packets(*parts))
    await client.post(CHAT, HELLO | {"model": "same"})

    assert (await client.answer()).body == body


async def test_a_chunked_whole_answer_becomes_one_with_a_length(client: Client, engine: ScriptedEngine) -> None:
    body = compact(completion(model="same"))
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    engine.answer(packets(head, chunked(body[:50]), chunked(body[50:]), b"0\r\n", b"\r\n"))
    for _ in range(2):
        await client.post(CHAT, HELLO | {"model": "same"})
        answer = await client.answer()
        assert answer.body == body
        assert answer.header("content-length") == str(len(body))
    assert engine.accepted == 1


async def test_an_answer_that_ends_with_its_connection_is_whole(client: Client, engine: ScriptedEngine) -> None:
    body = compact(completion(model="same"))
    engine.answer(packets(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n", body, fin=True))
    for _ in range(2):
        await client.post(CHAT, HELLO | {"model": "same"})
        assert (await client.answer()).body == body
    assert engine.accepted == 2


async def test_an_interim_answer_is_not_the_answer(client: Client, engine: ScriptedEngine) -> None:
    body = compact(completion(model="same"))
    engine.answer(packets(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 102 Processing\r\nx: y\r\n\r\n" + whole(body)))
    for _ in range(2):
        await client.post(CHAT, HELLO | {"model": "same"})
        assert (await client.answer()).body == body
    assert engine.accepted == 1


async def test_a_large_request_reaches_the_engine_whole(client: Client, engine: ScriptedEngine) -> None:
    body = compact({"model": "same", "messages": [{"role": "user", "content": "北" * 1_000_000}]})
    engine.answer(reply(completion(model="same")))
    await client.post(CHAT, body)

    assert (await client.answer()).status == 200
    assert engine.requests[0].body == body


async def test_a_chunked_request_reaches_the_engine_with_a_length(client: Client, engine: ScriptedEngine) -> None:
    engine.answer(reply(completion(model="same")))
    await client.post(CHAT, ODD, chunked=True)

    assert (await client.answer()).status == 200
    request = engine.requests[0]
    assert request.body == ODD
    assert request.header("content-length") == str(len(ODD)).encode()
    assert request.header("transfer-encoding") is None


async def test_a_request_may_come_in_any_pieces(serving: Serving, engine: ScriptedEngine) -> None:
    body = compact(HELLO)
    data = (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    )
    engine.answer(reply(completion()))
    async with await serving.connect() as client:
        for at in range(len(data)):
            await client.send(data[at : at + 1])
        assert (await client.answer()).status == 200
    assert engine.requests[0].json["messages"] == HELLO["messages"]


async def test_fields_that_look_like_targets_are_inert(client: Client, engine: ScriptedEngine) -> None:
    """A body cannot send a call elsewhere (CVE kind: api_base in the request)."""
    traps = {
        "api_base": "http://127.0.0.1:1",
        "base_url": "http://127.0.0.1:1",
        "api_key": "stolen",
        "extra_headers": {"x-evil": "1"},
    }
    engine.answer(reply(completion()))
    await client.post(CHAT, HELLO | traps, [("x-target-url", "http://127.0.0.1:1"), ("x-forwarded-host", "evil")])

    assert (await client.answer()).status == 200
    request = engine.requests[0]
    assert request.header("host") == f"127.0.0.1:{engine.port}".encode()
    assert not {"x-target-url", "x-forwarded-host", "x-evil"} & set(request.names)
    assert request.header("authorization") is None


async def test_unknown_parameters_pass_when_the_model_says_so(gateway: Gateway, engine: ScriptedEngine) -> None:
    settings = one_engine(engine)
    settings["models"]["same"]["unknown_parameters"] = "pass"
    serving = await gateway(settings)
    engine.answer(reply(completion(model="same")))
    body = compact(HELLO | {"model": "same", "future_parameter": {"a": [1.0, None]}})
    async with await serving.connect() as client:
        await client.post(CHAT, body)
        answer = await client.answer()

    assert answer.status == 200
    assert engine.requests[0].body == body
    assert answer.header("x-turnout-dropped") is None


async def test_dropped_parameters_are_told(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine))
    engine.answer(reply(completion()))
    async with await serving.connect() as client:
        await client.post(CHAT, HELLO | {"future_parameter": 1, "other": 2})
        answer = await client.answer()

    assert answer.header("x-turnout-dropped") == "future_parameter, other"
    assert set(engine.requests[0].json) == set(HELLO)


async def test_names_with_control_characters_make_no_header(client: Client, engine: ScriptedEngine) -> None:
    """A member's name appears in a header; it cannot end the line, and can be read back as a URL's parts can."""
    engine.answer(reply(completion()))
    await client.post(CHAT, HELLO | {"a\r\nx-injected: 1": 1, "é": 2, "f, o": 3, "北" * 64: 4, "": 5})
    answer = await client.answer()

    assert answer.status == 200
    assert answer.header("x-injected") is None
    told = answer.header("x-turnout-dropped")
    assert told == f"a%0D%0Ax-injected%3A%201, %C3%A9, f%2C%20o, {'%E5%8C%97' * 7}"


async def test_thousands_of_unknown_members_make_no_huge_header(client: Client, engine: ScriptedEngine) -> None:
    engine.answer(reply(completion()))
    await client.post(CHAT, HELLO | {f"{at}{'x' * 100}": 1 for at in range(5_000)})
    told = (await client.answer()).header("x-turnout-dropped")

    assert told is not None
    assert len(told) < 4_000


async def test_a_stream_head_in_pieces_is_read(client: Client, engine: ScriptedEngine) -> None:
    data = stream_head() + b"".join(chunked(part) for part in (*deltas("a"), DONE)) + b"0\r\n\r\n"
    engine.answer(packets(*(data[at : at + 1] for at in range(len(data)))))
    await client.post(CHAT, STREAM)

    assert (await client.answer()).body == b"".join([*deltas("a", model="m"), DONE])
