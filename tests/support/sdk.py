"""The real SDKs of OpenAI and Anthropic, pointed at a gateway."""

import contextlib
from collections.abc import AsyncIterator

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from tests.support.serving import Serving


@contextlib.asynccontextmanager
async def openai_client(serving: Serving, *, retries: int = 0) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(
        base_url=f"{serving.url}/v1", api_key="sk-client", max_retries=retries, timeout=20
    ) as client:
        yield client


@contextlib.asynccontextmanager
async def anthropic_client(serving: Serving, *, retries: int = 0) -> AsyncIterator[AsyncAnthropic]:
    async with AsyncAnthropic(base_url=serving.url, api_key="sk-client", max_retries=retries, timeout=20) as client:
        yield client
