"""What goes wrong, in the one shape that clients know."""

import json

import pytest

from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Answer, Client
from tests.support.json_type import Json
from tests.support.openai_bytes import (
    CHAT,
    COMPLETIONS,
    DONE,
    EMBEDDINGS,
    HELLO,
    STREAM,
    compact,
    completion,
    deltas,
    vllm_error,
)
from tests.support.scripted import ScriptedEngine, gzipped, hang_up, in_turn, packets, reply, reset, stream, whole
from tests.support.serving import Serving

INSIDE = ("shard-17", "/opt/", "Traceback", "10.0.0.1", "sk-", "worker.py")
"""What no client may ever read."""
TRACE = 'Traceback (most recent call last): File "/opt/vllm/worker.py" shard-17 http://10.0.0.1:8000 sk-secret'


async def ask(client: Client, body: Json = HELLO, path: str = CHAT) -> Answer:
    await client.post(path, body)
    answer = await client.answer()
    assert answer.whole
    return answer


def kind_of(answer: Answer) -> tuple[int, str, str | None]:
    return answer.status, answer.error["type"], answer.error["code"]


# ---- the client's mistakes


BAD_BODIES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "invalid_json"),
    "blank": (b" \r\n", "invalid_json"),
    "not JSON": (b"hello", "invalid_json"),
    "cut off": (b'{"model":"m"', "invalid_json"),
    "trailing comma": (b'{"model":"m",}', "invalid_json"),
    "two values": (b'{"model":"m"} {}', "invalid_json"),
    "an array": (b"[]", "invalid_json"),
    "a string": (b'"m"', "invalid_json"),
    "null": (b"null", "invalid_json"),
    "NaN": (b'{"model":"m","x":NaN}', "invalid_json"),
    "bad UTF-8": (b'{"model":"\xff"}', "invalid_type"),
    "gzip": (b"\x1f\x8b\x08\x00", "invalid_json"),
    "deep": (b'{"model":"m","x":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "invalid_json"),
    "UTF-16": ('{"model":"m"}'.encode("utf-16"), "invalid_json"),
}


@pytest.mark.parametrize(("body", "code"), BAD_BODIES.values(), ids=BAD_BODIES)
async def test_a_body_that_cannot_be_read(client: Client, engine: ScriptedEngine, body: bytes, code: str) -> None:
    answer = await ask(client, body)

    assert kind_of(answer) == (400, "invalid_request_error", code)
    assert engine.requests == []


@pytest.mark.parametrize(
    ("model", "code"),
    [
        (None, "missing_required_parameter"),
        ("", "missing_required_parameter"),
        (5, "invalid_type"),
        ([], "invalid_type"),
    ],
)
async def test_a_model_that_is_none(client: Client, model: Json, code: str) -> None:
    answer = await ask(client, HELLO | {"model": model})

    assert kind_of(answer) == (400, "invalid_request_error", code)
    assert answer.error["param"] == "model"


async def test_no_model_at_all(client: Client) -> None:
    assert kind_of(await ask(client, {"messages": []})) == (400, "invalid_request_error", "missing_required_parameter")


@pytest.mark.parametrize("value", ["true", 1, [], {}])
async def test_a_stream_flag_that_is_none(client: Client, value: Json) -> None:
    answer = await ask(client, HELLO | {"stream": value})

    assert kind_of(answer) == (400, "invalid_request_error", "invalid_type")
    assert answer.error["param"] == "stream"


@pytest.mark.parametrize("streamed", [False, True])
async def test_an_unknown_model(client: Client, engine: ScriptedEngine, serving: Serving, streamed: bool) -> None:
    answer = await ask(client, HELLO | {"model": "gpt-9", "stream": streamed})

    assert kind_of(answer) == (404, "not_found_error", "model_not_found")
    assert answer.error["param"] == "model"
    assert "gpt-9" in answer.error["message"]
    assert answer.header("content-type") == "application/json"
    assert engine.requests == []
    await serving.settled()


@pytest.mark.parametrize(
    "name", ["a\nERROR forged", "x" * 100_000, '"}', "北\u202e", "\ud800", "../../etc", "%s%d", "M"]
)
async def test_a_strange_model_name_does_no_harm(client: Client, name: str) -> None:
    answer = await ask(client, json.dumps(HELLO | {"model": name}).encode())

    assert answer.status in (400, 404)
    assert answer.error["type"] in ("not_found_error", "invalid_request_error")
    assert len(answer.body) < 2000
    assert b"\n" not in answer.body


async def test_clients_cannot_make_new_metric_series(client: Client, serving: Serving) -> None:
    for number in range(5):
        await ask(client, HELLO | {"model": f"made-up-{number}"})

    series = {sample.labels.get("model", "") for metric in serving.meters.collect() for sample in metric.samples}
    assert series <= {"", "m", "same", "vectors"}


async def test_the_engines_own_name_for_a_model_is_not_a_name_here(client: Client) -> None:
    assert (await ask(client, HELLO | {"model": "org/m"})).status == 404


async def test_a_compressed_body_is_refused_in_words(client: Client, engine: ScriptedEngine) -> None:
    await client.post(CHAT, b"".join(gzipped(compact(HELLO))), [("content-encoding", "gzip")])
    answer = await client.answer()

    assert kind_of(answer) == (400, "invalid_request_error", "invalid_encoding")
    assert engine.requests == []


@pytest.mark.parametrize(
    ("headers", "taken"),
    [
        ([], True),
        ([("content-type", "application/json")], True),
        ([("content-type", "Application/JSON; charset=utf-8")], True),
        ([("content-type", "application/vnd.x+json")], True),
        ([("content-type", "text/plain")], False),
        ([("content-type", "application/x-www-form-urlencoded")], False),
        ([("content-type", "text/plain"), ("origin", "https://good.example")], False),
        ([("content-type", "application/json"), ("origin", "https://evil.example")], True),
        ([("origin", "https://evil.example")], False),
        ([("origin", "https://good.example")], True),
    ],
)
async def test_a_body_says_that_it_is_json(
    gateway: Gateway, engine: ScriptedEngine, headers: list[tuple[str, str]], taken: bool
) -> None:
    """No type may pass; but a page that may not call gets in with nothing that a browser lets it send unasked."""
    engine.answer(reply(completion()))
    serving = await gateway(one_engine(engine, server={"cors_origins": ["https://good.example"]}))
    body = compact(HELLO)
    lines = [f"POST {CHAT} HTTP/1.1", "host: x", f"content-length: {len(body)}", *map(": ".join, headers), "", ""]
    async with await serving.connect() as client:
        for _ in range(2):
            await client.send("\r\n".join(lines).encode() + body)
            answer = await client.answer()
            if taken:
                assert answer.status == 200
            else:
                assert kind_of(answer) == (400, "invalid_request_error", "unsupported_content_type")
    assert len(engine.requests) == 2 * taken


# ---- which paths a model has


async def test_embeddings_of_a_chat_model(client: Client, engine: ScriptedEngine) -> None:
    answer = await ask(client, {"model": "m", "input": "x"}, EMBEDDINGS)

    assert kind_of(answer) == (400, "invalid_request_error", None)
    assert answer.error["param"] == "model"
    assert engine.requests == []


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
async def test_chat_with_an_embedding_model(client: Client, engine: ScriptedEngine, path: str) -> None:
    answer = await ask(client, HELLO | {"model": "vectors", "prompt": "x"}, path)

    assert kind_of(answer) == (400, "invalid_request_error", None)
    assert engine.requests == []


@pytest.mark.parametrize("kind", ["trtllm", "triton"])
async def test_embeddings_are_served_by_vllm_only(gateway: Gateway, engine: ScriptedEngine, kind: str) -> None:
    """A configuration that says otherwise is refused by the loader; this one goes around it."""
    serving = await gateway(one_engine(engine, kind))
    async with await serving.connect() as client:
        answer = await ask(client, {"model": "vectors", "input": "x"}, EMBEDDINGS)

    assert kind_of(answer)[:2] == (400, "invalid_request_error")
    assert "embedding" in answer.error["message"]
    assert engine.requests == []
    await serving.settled()


async def test_triton_may_be_declared_to_serve_embeddings(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine, "triton", embeddings=True))
    engine.answer(reply({"object": "list", "model": "org/vectors", "data": []}))
    async with await serving.connect() as client:
        assert (await ask(client, {"model": "vectors", "input": "x"}, EMBEDDINGS)).status == 200


TOKENS: list[Json] = [[9906, 1917], [[9906, 1917]], [[9906], [1917]], [-1], [0.5]]


@pytest.mark.parametrize("tokens", TOKENS, ids=repr)
async def test_token_ids_are_refused_by_name(client: Client, engine: ScriptedEngine, tokens: Json) -> None:
    answer = await ask(client, {"model": "vectors", "input": tokens}, EMBEDDINGS)

    assert kind_of(answer)[:2] == (400, "invalid_request_error")
    assert answer.error["param"] == "input"
    assert "check_embedding_ctx_length" in answer.error["message"]
    assert engine.requests == []


@pytest.mark.parametrize("tokens", TOKENS, ids=repr)
async def test_token_ids_pass_where_they_may(gateway: Gateway, engine: ScriptedEngine, tokens: Json) -> None:
    settings = one_engine(engine)
    settings["models"]["vectors"]["token_inputs"] = "pass"
    engine.answer(reply({"object": "list", "model": "org/vectors", "data": []}))
    serving = await gateway(settings)
    async with await serving.connect() as client:
        assert (await ask(client, {"model": "vectors", "input": tokens}, EMBEDDINGS)).status == 200
    assert engine.requests[0].json["input"] == tokens


@pytest.mark.parametrize("texts", ["1", ["1", "2"], [], "[1]", ["[1]"]], ids=repr)
async def test_texts_are_no_token_ids(client: Client, engine: ScriptedEngine, texts: Json) -> None:
    engine.answer(reply({"object": "list", "model": "org/vectors", "data": []}))

    assert (await ask(client, {"model": "vectors", "input": texts}, EMBEDDINGS)).status == 200


# ---- the engine's answers


Expected = tuple[int, str, str | None]
ENGINE_ERRORS: dict[str, tuple[str, int, Json, Expected]] = {
    "vllm 400": ("vllm", 400, vllm_error("'temperature' must be non-negative"), (400, "invalid_request_error", None)),
    "vllm old shape": (
        "vllm",
        400,
        {"object": "error", "message": "bad top_p", "type": "BadRequestError", "param": None, "code": 400},
        (400, "invalid_request_error", None),
    ),
    "vllm too long": (
        "vllm",
        400,
        vllm_error("This model's maximum context length is 2048 tokens. However, you requested 4000 tokens."),
        (400, "invalid_request_error", "context_length_exceeded"),
    ),
    "vllm no such model": (
        "vllm",
        404,
        vllm_error("The model `org/m` does not exist.", 404, "NotFoundError"),
        (404, "not_found_error", "model_not_found"),
    ),
    "vllm 422": (
        "vllm",
        422,
        {"detail": [{"loc": ["body", "messages"], "msg": "field required"}]},
        (400, "invalid_request_error", None),
    ),
    "vllm 500 without a message": (
        "vllm",
        500,
        vllm_error("", 500, "InternalServerError"),
        (502, "server_error", "engine_error"),
    ),
    "vllm 500 with its inside": (
        "vllm",
        500,
        vllm_error(TRACE, 500, "InternalServerError"),
        (502, "server_error", "engine_error"),
    ),
    "vllm refuses our key": ("vllm", 401, {"error": "Unauthorized"}, (502, "server_error", "engine_error")),
    "vllm forbids": ("vllm", 403, {"error": "Forbidden"}, (502, "server_error", "engine_error")),
    "vllm is busy": (
        "vllm",
        503,
        vllm_error("Server is overloaded, try again", 503),
        (503, "server_error", "engine_overloaded"),
    ),
    "vllm 429": ("vllm", 429, vllm_error("slow down", 429), (429, "rate_limit_error", "rate_limit_exceeded")),
    "trtllm unknown field": (
        "trtllm",
        400,
        {
            "object": "error",
            "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'top_kk'), 'msg': 'Extra inputs', 'input': 5}]",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
        (400, "invalid_request_error", None),
    ),
    "trtllm 500": (
        "trtllm",
        500,
        {"object": "error", "message": TRACE, "code": 500},
        (502, "server_error", "engine_error"),
    ),
    "triton 422": (
        "triton",
        422,
        {
            "detail": [
                {"type": "extra_forbidden", "loc": ["body", "x"], "msg": "Extra inputs are not permitted", "input": 1}
            ]
        },
        (400, "invalid_request_error", None),
    ),
    "triton 400": (
        "triton",
        400,
        {"detail": "Only single choice responses are supported"},
        (400, "invalid_request_error", None),
    ),
    "triton unknown model": (
        "triton",
        400,
        {"detail": "Unknown model: org/m"},
        (404, "not_found_error", "model_not_found"),
    ),
    "triton 500": ("triton", 500, {"detail": TRACE}, (502, "server_error", "engine_error")),
    "HTML 502": (
        "vllm",
        502,
        f"<html><h1>502 Bad Gateway</h1>{TRACE}</html>".encode(),
        (502, "server_error", "engine_error"),
    ),
    "empty 500": ("vllm", 500, b"", (502, "server_error", "engine_error")),
    "empty 504": ("vllm", 504, b"", (502, "server_error", "engine_error")),
    "a redirect": ("vllm", 307, b"", (502, "server_error", "engine_error")),
    "204": ("vllm", 204, b"", (502, "server_error", "engine_error")),
    "text 400": ("vllm", 400, b"no", (400, "invalid_request_error", None)),
    "no such path": ("vllm", 404, {"detail": "Not Found"}, (400, "invalid_request_error", None)),
}


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("kind", "status", "body", "expected"), ENGINE_ERRORS.values(), ids=ENGINE_ERRORS)
async def test_an_engines_error_becomes_the_contracts(
    gateway: Gateway, engine: ScriptedEngine, kind: str, status: int, body: Json, expected: Expected, streamed: bool
) -> None:
    serving = await gateway(one_engine(engine, kind))
    engine.answer(packets(b"HTTP/1.1 204 X\r\n\r\n") if status == 204 else reply(body, status=status))
    async with await serving.connect() as client:
        answer = await ask(client, HELLO | {"stream": streamed})

    assert kind_of(answer) == expected
    assert answer.header("content-type") == "application/json"
    for secret in INSIDE:
        assert secret not in answer.body.decode()
    assert "org/m" not in answer.error["message"]
    await serving.settled()


async def test_a_gzip_error_body_is_read_and_not_labelled(client: Client, engine: ScriptedEngine) -> None:
    body = b"".join(gzipped(compact(vllm_error("bad 'top_p'"))))
    engine.answer(reply(body, status=400, headers=[b"content-encoding: gzip"]))
    answer = await ask(client)

    assert answer.status == 400
    assert answer.header("content-encoding") is None
    assert "top_p" in answer.error["message"]


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_engine_says_when_to_come_again(client: Client, engine: ScriptedEngine, status: int) -> None:
    engine.answer(
        reply(vllm_error("too many requests in the queue", status), status=status, headers=[b"Retry-After: 7"])
    )
    answer = await ask(client)

    assert answer.status == status
    assert answer.header("retry-after") == "7"
    assert answer.header("x-should-retry") == "true"


@pytest.mark.parametrize(
    "wait", [b"", b"-5", b"soon", b"1e309", b"nan", b"Wed, 21 Oct 2026 07:28:00 GMT", b"0", b"999999999"]
)
async def test_a_strange_retry_after_becomes_a_sensible_one(
    client: Client, engine: ScriptedEngine, wait: bytes
) -> None:
    engine.answer(reply(vllm_error("too many requests", 429), status=429, headers=[b"retry-after: " + wait]))
    answer = await ask(client)

    assert 1 <= int(answer.header("retry-after") or "") <= 86_400


async def test_refused_credentials_are_not_worth_a_retry(client: Client, engine: ScriptedEngine) -> None:
    engine.answer(reply({"error": "Unauthorized"}, status=401))

    assert (await ask(client)).header("x-should-retry") == "false"


NONSENSE: dict[str, Json] = {
    "no HTTP": packets(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"),
    "HTTP/0.9": packets(b"hello", fin=True),
    "hangs up": hang_up,
    "resets": reset,
    "half a head": packets(b"HTTP/1.1 200 OK\r\ncontent-", fin=True),
    "body shorter than its length": packets(whole(b"{}").replace(b"length: 2", b"length: 20"), fin=True),
    "no JSON": reply(b"hello"),
    "an array": reply(b"[]"),
    "empty": reply(b""),
    "half a chunk": packets(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\n{", fin=True),
    "a bad chunk size": packets(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n"),
    "chunks without end": packets(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n", fin=True),
    "101": packets(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
    "two lengths": packets(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}"),
}


@pytest.mark.parametrize("script", NONSENSE.values(), ids=NONSENSE)
async def test_nonsense_of_an_engine_is_its_error(
    client: Client, engine: ScriptedEngine, serving: Serving, script: Json
) -> None:
    engine.answer(script)
    answer = await ask(client)

    assert kind_of(answer) == (502, "server_error", "engine_error")
    await serving.settled()
    engine.answer(reply(completion()))
    assert (await ask(client)).status == 200


async def test_a_body_longer_than_its_length_is_cut_and_its_connection_not_used_again(
    client: Client, engine: ScriptedEngine
) -> None:
    body = compact(completion(model="same"))
    engine.answer(packets(whole(body) + b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged"))
    for _ in range(2):
        answer = await ask(client, HELLO | {"model": "same"})
        assert answer.body == body
    assert engine.accepted == 2


async def test_a_mistake_of_one_client_is_no_mark_against_the_engine(
    client: Client, engine: ScriptedEngine, serving: Serving
) -> None:
    """Twenty requests that are too long, then a good one (cases F65)."""
    engine.answer(reply(vllm_error("maximum context length is 8 tokens"), status=400))
    for _ in range(20):
        assert (await ask(client)).status == 400
    engine.answer(reply(completion()))

    assert (await ask(client)).status == 200
    assert serving.outcomes()["rejected"] == 20


@pytest.mark.parametrize("status", [400, 404, 413, 422])
async def test_a_refusal_is_not_tried_elsewhere(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine, status: int
) -> None:
    settings = one_engine(engine)
    settings["engines"]["e"]["urls"].append(other.url)
    for one in (engine, other):
        one.answer(reply(vllm_error("no", status), status=status))
    serving = await gateway(settings)
    async with await serving.connect() as client:
        assert (await ask(client)).status in (400, 404, 413)

    assert len(engine.requests) + len(other.requests) == 1


async def test_the_number_of_attempts_is_bounded(gateway: Gateway, engines: Json) -> None:
    replicas = [await engines() for _ in range(5)]
    for one in replicas:
        one.answer(reply(b"", status=500))
    settings = one_engine(replicas[0])
    settings["engines"]["e"]["urls"] = [one.url for one in replicas]
    settings["retry"] = {"attempts": 3}
    serving = await gateway(settings)
    async with await serving.connect() as client:
        answer = await ask(client)

    assert answer.status == 502
    assert answer.header("x-turnout-attempts") == "3"
    assert sum(len(one.requests) for one in replicas) == 3
    await serving.settled()


async def test_a_model_with_two_engines_is_served_by_the_other_when_one_fails(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """Each engine has its own name for the model, and its own profile."""
    settings = one_engine(engine)
    settings["engines"]["t"] = {"kind": "triton", "urls": [other.url]}
    settings["models"]["both"] = {"targets": [{"engine": "e", "model": "a"}, {"engine": "t", "model": "b"}]}
    engine.answer(reply(b"", status=500))
    other.answer(reply(completion(model="b")))
    serving = await gateway(settings)
    async with await serving.connect() as client:
        for _ in range(3):
            answer = await ask(client, HELLO | {"model": "both"})
            assert answer.status == 200
            assert answer.json["model"] == "both"
            assert answer.header("x-turnout-engine") == "t"
    assert {request.json["model"] for request in engine.requests} == {"a"}
    assert {request.json["model"] for request in other.requests} == {"b"}
    assert all("max_tokens" in request.json for request in other.requests)
    assert not any("max_tokens" in request.json for request in engine.requests)
    await serving.settled()


async def test_all_replicas_busy_gives_503_before_any_stream_begins(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """Nothing is committed before an engine has answered (cases A13)."""
    settings = one_engine(engine)
    settings["engines"]["e"]["urls"].append(other.url)
    for one in (engine, other):
        one.answer(reply(vllm_error("overloaded", 503), status=503))
    serving = await gateway(settings)
    async with await serving.connect() as client:
        answer = await ask(client, STREAM)

    assert kind_of(answer) == (503, "server_error", "engine_overloaded")
    assert int(answer.header("retry-after") or "") >= 1


async def test_two_hundred_refused_streams_leave_nothing_behind(
    client: Client, engine: ScriptedEngine, serving: Serving
) -> None:
    """Then the next one works (cases E55)."""
    limited = reply(vllm_error("slow down", 429), status=429)
    engine.answer(in_turn(*[limited] * 200, stream(*deltas("a"), DONE)))
    for _ in range(200):
        assert (await ask(client, STREAM)).status == 429
    assert (await ask(client, STREAM)).events[-1] == b"[DONE]"
    await serving.settled()
    assert engine.accepted <= 2
