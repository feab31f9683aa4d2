"""What is counted: one row per kind of work."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tests.performance.rig import AsgiRig, Rig, text
from tests.support.json_type import Json

Step = Callable[[], object]

MODEL, ALIAS, ANSWERED_AS, EMBEDDER = "small-model", "gpt-4o-mini", "vendor/aliased-model", "embedder"


@dataclass(frozen=True, slots=True)
class Scenario:
    """`prepare` sets everything up and returns the step, which does the work once."""

    name: str
    unit: str
    prepare: Callable[[], Step]


KEY: Final = "none"
"""The key that all requests show; without keys in the configuration nobody looks at it."""

LIMITS: Final[Json] = {"rpm": 10**8, "tpm": 10**11, "parallel": 10**5}
"""Limits that nobody reaches while the clock stands still."""


def keys(limits: Json = None) -> dict[str, Json]:
    """The part of a configuration that asks for keys."""
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    own: dict[str, Json] = {} if limits is None else {"limits": limits}
    return {"keys": [{"name": "team", "hash": f"sha256:{digest}", **own}]}


def rig(*, models: int = 0, endpoints: int = 4, more: Mapping[str, Json] | None = None, kind: type[Rig] = Rig) -> Rig:
    urls = [f"http://10.0.{number // 250}.{number % 250 + 1}:8000" for number in range(endpoints)]
    made = kind(
        {
            "engines": {"engine": {"kind": "vllm", "urls": urls}},
            "models": {
                MODEL: {"engine": "engine"},
                "aliased": {"engine": "engine", "model": ANSWERED_AS, "aliases": [ALIAS]},
                EMBEDDER: {"engine": "engine", "task": "embedding"},
            }
            | {f"model-{number}": {"engine": "engine"} for number in range(models)},
            **(more or {}),
        }
    )
    made.connect_engines()
    return made


def request(path: bytes, body: Mapping[str, Json]) -> bytes:
    data = json.dumps(body).encode()
    head = (
        b"POST %s HTTP/1.1\r\nhost: gateway.example:8080\r\ncontent-type: application/json\r\n"
        b"authorization: Bearer none\r\nuser-agent: client/1.0\r\ncontent-length: %d\r\n\r\n"
    )
    return head % (path, len(data)) + data


def chat(model: str, size: int = 150, **more: Json) -> bytes:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text(size)}]
    return request(b"/v1/chat/completions", {"model": model, "messages": messages, "max_tokens": 64, **more})


def answer(body: Mapping[str, Json]) -> bytes:
    data = json.dumps(body, separators=(",", ":")).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(data), data)


def completion(model: str) -> bytes:
    message = {"role": "assistant", "content": text(250)}
    return answer(
        {
            "id": "chatcmpl-0123456789abcdef01234567",
            "object": "chat.completion",
            "created": 1700000000,
            "model": model,
            "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 40, "completion_tokens": 64, "total_tokens": 104},
        }
    )


def vectors() -> bytes:
    row = {"object": "embedding", "index": 0, "embedding": [0.012345678 * (number % 7 - 3) for number in range(1536)]}
    usage = {"prompt_tokens": 40, "total_tokens": 40}
    return answer({"id": "embd-0123", "object": "list", "data": [row], "model": EMBEDDER, "usage": usage})


HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"


def event(model: str, delta: Mapping[str, str], finish: str | None = None) -> bytes:
    body = {
        "id": "chatcmpl-0123456789abcdef01234567",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": model,
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}],
    }
    return chunk(b"data: %s\n\n" % json.dumps(body, separators=(",", ":")).encode())


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def opening(model: str) -> tuple[bytes, ...]:
    """What an engine sends until the client has seen the first words."""
    first = event(model, {"role": "assistant", "content": ""})
    return HEAD + first, *(event(model, {"content": f" word{number}"}) for number in range(3))


def closing(model: str) -> tuple[bytes, ...]:
    return event(model, {"content": ""}, "stop"), chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"


def asking(made: Rig, asked: bytes, *answered: bytes) -> Step:
    """One connection that asks the same again and again."""
    client = made.connect()
    count = len(answered)

    def step() -> None:
        client.data_received(asked)
        made.catch_up()
        engine = made.asked()
        for part in answered:
            engine.data_received(part)
            made.catch_up()
        assert engine.listener is None, f"the exchange is not over after {count} packets"

    return step


def streaming(model: str, sent_as: str) -> Step:
    """A stream that is open; the step is one event of it."""
    made = rig()
    client = made.client()
    client.data_received(chat(model, stream=True))
    engine = made.asked()
    for part in opening(sent_as):
        engine.data_received(part)
    packet = event(sent_as, {"content": " more"})
    return lambda: engine.data_received(packet)


def many_streams() -> Step:
    """The step opens one more stream, which stays open."""
    made = rig(endpoints=1)
    client = made.client()
    asked, answered = chat(MODEL, stream=True), opening(MODEL)
    clients = [client]

    def step() -> None:
        client = made.client()
        clients.append(client)
        client.data_received(asked)
        engine = made.asked()
        for part in answered:
            engine.data_received(part)
        made.forget(engine)
        made.connect_next_engine()

    return step


SCENARIOS: Final = (
    Scenario("chat", "request", lambda: asking(rig(), chat(MODEL), completion(MODEL))),
    Scenario("chat_alias", "request", lambda: asking(rig(), chat(ALIAS), completion(ANSWERED_AS))),
    Scenario("chat_keys", "request", lambda: asking(rig(more=keys()), chat(MODEL), completion(MODEL))),
    Scenario("chat_limits", "request", lambda: asking(rig(more=keys(LIMITS)), chat(MODEL), completion(MODEL))),
    Scenario("chat_20k", "request", lambda: asking(rig(), chat(MODEL, 20_000), completion(MODEL))),
    Scenario(
        "embeddings",
        "request",
        lambda: asking(rig(), request(b"/v1/embeddings", {"model": EMBEDDER, "input": text(200)}), vectors()),
    ),
    Scenario(
        "stream",
        "stream, opened and ended",
        lambda: asking(rig(), chat(MODEL, stream=True), *opening(MODEL), *closing(MODEL)),
    ),
    Scenario("event", "event of a stream", lambda: streaming(MODEL, MODEL)),
    Scenario("event_alias", "event of a stream", lambda: streaming(ALIAS, ANSWERED_AS)),
    Scenario("asgi_chat", "request", lambda: asking(rig(kind=AsgiRig), chat(MODEL), completion(MODEL))),
    Scenario("asgi_chat_20k", "request", lambda: asking(rig(kind=AsgiRig), chat(MODEL, 20_000), completion(MODEL))),
    Scenario(
        "asgi_stream",
        "stream of 23 events, opened and ended",
        lambda: asking(
            rig(kind=AsgiRig),
            chat(MODEL, stream=True),
            *opening(MODEL),
            *(event(MODEL, {"content": f" more{number}"}) for number in range(20)),
            *closing(MODEL),
        ),
    ),
    Scenario("open_stream", "stream that stays open", many_streams),
)
