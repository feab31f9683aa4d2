"""`turnout demo`, used as its own text says."""

import asyncio
import re
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from openai import AsyncOpenAI

from tests.support.process import Process


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncIterator[Process]:
    """A running demo."""
    process = Process(tmp_path, "demo", "--port", "0")
    yield process
    process.kill()


async def test_what_it_prints_works_and_nothing_is_left(demo: Process) -> None:
    """The OpenAI SDK's calls, the curl line's body, and the pages; then Ctrl-C ends gateway and engines."""
    port = await demo.listening()
    text = demo.stdout
    base = f"http://127.0.0.1:{port}"
    async with AsyncOpenAI(base_url=f"{base}/v1", api_key="none", max_retries=0) as openai:
        listed = [model.id async for model in openai.models.list()]
        for model in ("qwen2.5-1.5b", "llama-3.2-3b", "mistral-7b", "chat", "gpt-4o-mini"):
            answer = await openai.chat.completions.create(model=model, messages=[{"role": "user", "content": "Hello!"}])
            assert answer.choices[0].message.content
            assert answer.model == model
        vectors = await openai.embeddings.create(model="minilm", input=["one", "two"])
    body = re.search(r"-d '(\{.*\})'", text)
    assert body is not None, text
    async with httpx2.AsyncClient(base_url=base) as client:
        stream = await client.post("/v1/chat/completions", content=body[1])
        pages = {path: (await client.get(path)).status_code for path in ("/", "/readyz", "/metrics", "/openapi.json")}
    demo.interrupt(signal.SIGINT)
    code = await demo.ended()

    assert set(listed) == {"qwen2.5-1.5b", "llama-3.2-3b", "mistral-7b", "chat", "gpt-4o-mini", "minilm"}
    assert all(f"{name}" in text for name in listed)
    assert len(vectors.data) == 2
    assert stream.text.endswith("data: [DONE]\n\n")
    assert set(pages.values()) == {200}
    assert all(f"{base}{path}" in text for path in pages)
    assert code == 0
    assert demo.stderr == ""
    for number in set(re.findall(r"127\.0\.0\.1:(\d+)", text)):
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", int(number))


async def test_a_service_manager_can_end_it(demo: Process) -> None:
    await demo.listening()
    demo.interrupt(signal.SIGTERM)

    assert await demo.ended() == 0
