"""An application that goes away costs nothing more: a real vLLM stops computing its answer at once."""

import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from openai import OpenAI

from tests.e2e.conftest import Engine
from tests.e2e.serve_vllm import CHAT_MODEL
from tests.running import eventually

pytestmark = pytest.mark.e2e

RUNNING = "vllm:num_requests_running"
TOKENS = "vllm:generation_tokens_total"
CHOICES, LENGTH = 100, 900
"""100 answers of 900 tokens take a real vLLM on two idle cores ten seconds or so; 16 of them only two."""

LONG_ANSWER = {
    "model": CHAT_MODEL,
    "messages": [{"role": "user", "content": "Tell me a story."}],
    "temperature": 1,
    "n": CHOICES,
    "max_tokens": LENGTH,
}


@pytest.fixture
def idle(engine: Engine) -> Iterator[Engine]:
    """The engine with nothing to do, before and after."""
    assert eventually(lambda: engine.metric(RUNNING) == 0, 10)
    yield engine
    assert eventually(lambda: engine.metric(RUNNING) == 0, 30)


def assert_stopped_early(engine: Engine, tokens_before: float) -> None:
    """The engine lets go within a second (plus what asking for its metrics takes), before the answers' end."""
    assert eventually(lambda: engine.metric(RUNNING) == 0, 2)
    assert engine.metric(TOKENS) - tokens_before < CHOICES * LENGTH


def test_in_the_middle_of_a_stream(client: OpenAI, idle: Engine) -> None:
    before = idle.metric(TOKENS)
    chunks = client.chat.completions.create(
        model=CHAT_MODEL,
        messages=[{"role": "user", "content": "Tell me a story."}],
        temperature=1,
        n=CHOICES,
        max_tokens=LENGTH,
        stream=True,
        extra_body={"ignore_eos": True},
    )
    next(chunks)
    assert eventually(lambda: idle.metric(RUNNING) > 0, 5)

    chunks.close()

    assert_stopped_early(idle, before)


def test_before_a_whole_answer(gateway_url: str, idle: Engine) -> None:
    before = idle.metric(TOKENS)
    address = urlsplit(gateway_url)
    body = json.dumps(LONG_ANSWER | {"ignore_eos": True}).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\n"
        f"host: {address.netloc}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((address.hostname, address.port), timeout=5) as connection:
        connection.sendall(head.encode() + body)
        assert eventually(lambda: idle.metric(RUNNING) > 0, 5)

    assert_stopped_early(idle, before)
