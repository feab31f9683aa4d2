"""Keys of clients: who is let in, to what, and that no key is ever said again."""

import pytest

from tests.integration.conftest import Gateway, one_engine
from tests.support.client import Answer
from tests.support.json_type import Json
from tests.support.keys import KEY, bearer, key_entry
from tests.support.openai_bytes import CHAT, HELLO, completion, vllm_error
from tests.support.scripted import ScriptedEngine, reply
from tests.support.serving import Serving

ASK = HELLO
OTHER = "sk-other-key"


@pytest.fixture
async def guarded(gateway: Gateway, engine: ScriptedEngine) -> Serving:
    """A gateway with one key for everything and one for `same` alone."""
    engine.answer(reply(completion()))
    keys = [key_entry("team-a"), key_entry("narrow", OTHER, models=["same"])]
    return await gateway(
        one_engine(engine, server={"cors_origins": ["https://page.test"]}) | {"keys": keys}, whole=True
    )


async def ask(serving: Serving, headers: list[tuple[str, str]], body: Json = ASK, path: str = CHAT) -> Answer:
    async with await serving.connect() as client:
        await client.post(path, body, headers)
        return await client.answer()


async def get(serving: Serving, path: str, headers: list[tuple[str, str]], method: str = "GET") -> Answer:
    async with await serving.connect() as client:
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
        await client.send(f"{method} {path} HTTP/1.1\r\nhost: g.test\r\n{lines}\r\n".encode("latin-1"))
        return await client.answer()


async def test_a_known_key_is_let_in_and_stays_at_the_gateway(guarded: Serving, engine: ScriptedEngine) -> None:
    answer = await ask(guarded, bearer())

    assert answer.status == 200
    assert KEY.encode() not in b"".join(value for _, value in engine.requests[0].headers)


@pytest.mark.parametrize("scheme", ["bearer", "BEARER"])
async def test_the_scheme_may_be_spelled_as_one_likes(guarded: Serving, scheme: str) -> None:
    assert (await ask(guarded, [("authorization", f"{scheme} {KEY}")])).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("authorization", "Bearer sk-wrong-key-of-somebody")],
        [("authorization", f"Basic {KEY}")],
        [("authorization", KEY)],
        [("authorization", "Bearer")],
        [("authorization", f"Bearer {KEY}x")],
        [("authorization", "Bearer \xfc\xff\xe9")],
        [("x-api-key", KEY)],
    ],
)
async def test_nobody_else_is_let_in_and_no_key_is_repeated(
    guarded: Serving, engine: ScriptedEngine, headers: list[tuple[str, str]]
) -> None:
    """A missing key, a wrong one, another scheme, bytes that are no text, or Anthropic's header on OpenAI's paths."""
    answer = await ask(guarded, headers)

    assert answer.status == 401
    assert answer.error["type"] == "authentication_error"
    assert answer.error["code"] == "invalid_api_key"
    shown = answer.body + repr(answer.headers).encode()
    assert not any(value.encode("latin-1")[-8:] in shown for _, value in headers if value != "Bearer")
    assert engine.requests == []


async def test_a_body_without_a_key_is_refused_before_it_has_come(guarded: Serving) -> None:
    async with await guarded.connect() as client:
        await client.send(b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\ncontent-length: 60000000\r\n\r\n{")
        assert (await client.answer()).status == 401


async def test_a_key_is_for_its_models_only(guarded: Serving, engine: ScriptedEngine) -> None:
    refused = await ask(guarded, bearer(OTHER))
    served = await ask(guarded, bearer(OTHER), ASK | {"model": "same"})
    unknown = await ask(guarded, bearer(OTHER), ASK | {"model": "nothing"})

    assert (refused.status, refused.error["type"]) == (403, "permission_error")
    assert (refused.error["code"], refused.error["param"]) == ("model_not_found", "model")
    assert served.status == 200
    assert unknown.status == 404
    assert len(engine.requests) == 1


async def test_an_allowed_model_may_be_asked_for_by_its_aliases(gateway: Gateway, engine: ScriptedEngine) -> None:
    engine.answer(reply(completion()))
    keys = [key_entry("by-model", models=["m"]), key_entry("by-alias", OTHER, models=["gpt-4o"])]
    serving = await gateway(one_engine(engine) | {"keys": keys})

    asked = [(key, name) for key in (KEY, OTHER) for name in ("m", "gpt-4o")]
    found = [(await ask(serving, bearer(key), ASK | {"model": name})).status for key, name in asked]
    assert found == [200, 200, 403, 200]


async def test_the_listing_shows_what_the_key_may_use(guarded: Serving) -> None:
    everything = await get(guarded, "/v1/models", bearer())
    narrow = await get(guarded, "/v1/models", bearer(OTHER))
    hidden = await get(guarded, "/v1/models/m", bearer(OTHER))
    nobody = await get(guarded, "/v1/models", [])

    assert {entry["id"] for entry in everything.json["data"]} == {"m", "gpt-4o", "same", "vectors"}
    assert [entry["id"] for entry in narrow.json["data"]] == ["same"]
    assert (hidden.status, nobody.status) == (404, 401)
    assert nobody.error["code"] == "invalid_api_key"


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/openapi.json", "/"])
async def test_operators_paths_ask_for_no_key(guarded: Serving, path: str) -> None:
    assert (await get(guarded, path, [])).status == 200


async def test_a_preflight_request_needs_no_key(guarded: Serving) -> None:
    """Browsers send none with it; and the refusal of the request itself can be read by the page."""
    page = [("origin", "https://page.test"), ("access-control-request-method", "POST")]
    asked = await get(guarded, CHAT, [*page, ("access-control-request-headers", "authorization")], "OPTIONS")
    refused = await ask(guarded, page[:1])

    assert asked.status == 200
    assert (refused.status, refused.header("access-control-allow-origin")) == (401, "https://page.test")


async def test_disabled_and_expired_keys_are_refused(gateway: Gateway, engine: ScriptedEngine) -> None:
    engine.answer(reply(completion()))
    keys = [
        key_entry("off", "sk-1", disabled=True),
        key_entry("over", "sk-2", expires="2020-01-01"),
        key_entry("on", "sk-3", expires="2999-01-01T00:00:00+02:00"),
    ]
    serving = await gateway(one_engine(engine) | {"keys": keys})

    found = [await ask(serving, bearer(key)) for key in ("sk-1", "sk-2", "sk-3")]
    assert [answer.status for answer in found] == [401, 401, 200]
    assert ["disabled" in str(found[0].error), "expired" in str(found[1].error)] == [True, True]


async def test_a_key_that_ends_while_its_connection_lives_ends_there_too(
    gateway: Gateway, engine: ScriptedEngine
) -> None:
    engine.answer(reply(completion()))
    serving = await gateway(one_engine(engine) | {"keys": [key_entry("team-a", expires="2999-01-01")]})
    now = [0.0]
    assert serving.plane.guard is not None
    serving.plane.guard.clock = lambda: now[0]

    async with await serving.connect() as client:
        await client.post(CHAT, ASK, bearer())
        first = await client.answer()
        now[0] = 1e12
        await client.post(CHAT, ASK, bearer())
        second = await client.answer()
    assert (first.status, second.status) == (200, 401)


async def test_an_empty_list_of_keys_lets_nobody_in(gateway: Gateway, engine: ScriptedEngine) -> None:
    serving = await gateway(one_engine(engine) | {"keys": []})

    assert (await ask(serving, bearer())).status == 401


@pytest.mark.parametrize("headers", [bearer(), [("x-api-key", KEY)], [("x-api-key", KEY), *bearer("another")]])
async def test_anthropics_clients_may_use_their_own_header(
    guarded: Serving, engine: ScriptedEngine, headers: list[tuple[str, str]]
) -> None:
    engine.on("/v1/messages", reply(b'{"id": "msg_1", "type": "message", "model": "org/m", "content": []}'))

    assert (await ask(guarded, headers, ASK | {"max_tokens": 5}, "/v1/messages")).status == 200


async def test_anthropics_clients_are_refused_in_their_own_words(guarded: Serving) -> None:
    answer = await ask(guarded, [("x-api-key", "wrong")], ASK | {"max_tokens": 5}, "/v1/messages")

    assert answer.status == 401
    assert answer.json["type"] == "error"
    assert answer.json["error"]["type"] == "authentication_error"
    assert "'x-api-key: KEY'" in answer.json["error"]["message"]


async def test_a_new_configuration_changes_the_keys_of_connections_that_live(
    guarded: Serving, engine: ScriptedEngine
) -> None:
    async with await guarded.connect() as client:
        await client.post(CHAT, ASK, bearer())
        before = await client.answer()
        guarded.apply(one_engine(engine) | {"keys": [key_entry("other", OTHER)]})
        await client.post(CHAT, ASK, bearer())
        after = await client.answer()
    assert (before.status, after.status) == (200, 401)


async def test_refusals_are_counted(guarded: Serving) -> None:
    await ask(guarded, [])
    await ask(guarded, bearer(OTHER))
    metrics = (await get(guarded, "/metrics", [])).body.decode()

    assert 'turnout_keys_refused_total{reason="unknown"} 1.0' in metrics
    assert 'turnout_keys_refused_total{reason="model"} 1.0' in metrics


async def test_a_model_that_stands_in_need_not_be_listed(
    gateway: Gateway, engine: ScriptedEngine, other: ScriptedEngine
) -> None:
    """The operator has chosen it; asked for by its own name it is forbidden all the same."""
    engine.answer(reply(vllm_error("busy", 503, "ServiceUnavailableError"), status=503))
    other.answer(reply(completion(model="spare")))
    serving = await gateway(
        {
            "engines": {"e": {"kind": "vllm", "urls": [engine.url]}, "f": {"kind": "vllm", "urls": [other.url]}},
            "models": {"m": {"engine": "e", "fallbacks": ["spare"]}, "spare": {"engine": "f", "aliases": ["reserve"]}},
            "keys": [key_entry("narrow", models=["m"])],
        }
    )
    answers = [await ask(serving, bearer(), ASK | {"model": name}) for name in ("m", "spare", "reserve")]
    assert [answer.status for answer in answers] == [200, 403, 403]
    assert answers[0].header("x-turnout-fallback") == "spare"
