"""LangChain: ``ChatOpenAI`` with a tool bound to it, and ``OpenAIEmbeddings``."""

from functools import cache

import tiktoken
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

from tests.clients.libraries.report import (
    DESCRIPTION,
    PERSON,
    TEXTS,
    Person,
    call,
    main,
    numbers,
    said,
    target,
    weather,
)
from tests.support.json_type import Json

TOOL = StructuredTool.from_function(func=weather, name="get_weather", description=DESCRIPTION)


@cache
def chat_model(model: str) -> Json:
    return ChatOpenAI(
        model=model, base_url=target().base_url, api_key="unused", max_retries=0, timeout=30, stream_usage=True
    )


async def message_of(runnable: Json, messages: list[Json], *, streamed: bool) -> Json:
    """The answer; the chunks of a stream, added up as LangChain adds them."""
    if not streamed:
        return await runnable.ainvoke(messages)
    chunks = [chunk async for chunk in runnable.astream(messages)]
    total = chunks[0]
    for chunk in chunks[1:]:
        total += chunk
    return total


def read(message: Json) -> Json:
    usage = message.usage_metadata
    calls = [call(one["id"], one["name"], one["args"]) for one in message.tool_calls]
    calls += [call(one["id"], one["name"], {"invalid": one["error"]}) for one in message.invalid_tool_calls]
    finish = message.response_metadata.get("finish_reason")
    return said(message.content, calls, finish, usage and (usage["input_tokens"], usage["output_tokens"]))


async def ask(model: str, text: str, *, streamed: bool, tools: bool = False) -> Json:
    runnable = chat_model(model).bind_tools([TOOL]) if tools else chat_model(model)
    return read(await message_of(runnable, [HumanMessage(text)], streamed=streamed))


async def agent(model: str, text: str, *, streamed: bool) -> Json:
    runnable = chat_model(model).bind_tools([TOOL])
    messages: list[Json] = [HumanMessage(text)]
    first = await message_of(runnable, messages, streamed=streamed)
    messages.append(first)
    messages += [await TOOL.ainvoke(one) for one in first.tool_calls]
    return read(await message_of(runnable, messages, streamed=streamed))


async def person_by_schema(model: str) -> Json:
    return (await chat_model(model).with_structured_output(Person, method="json_schema").ainvoke(PERSON)).model_dump()


async def person_by_tool(model: str) -> Json:
    """The tool is named."""
    runnable = chat_model(model).with_structured_output(Person, method="function_calling")
    return (await runnable.ainvoke(PERSON)).model_dump()


async def embed(model: str, **more: Json) -> Json:
    embedder = OpenAIEmbeddings(model=model, base_url=target().base_url, api_key="unused", max_retries=0, **more)
    return numbers(await embedder.aembed_documents(TEXTS))


async def embeddings(model: str) -> Json:
    return await embed(model, check_embedding_ctx_length=False)


async def embeddings_as_floats(model: str) -> Json:
    floats: Json = {"encoding_format": "float"}
    return await embed(model, check_embedding_ctx_length=False, model_kwargs=floats)


async def embeddings_of_token_ids(model: str) -> Json:
    """What LangChain does by itself: it cuts the text into OpenAI's tokens.

    OpenAI's vocabularies are fetched from the network; one of single bytes stands for them.
    """
    vocabulary = {bytes([byte]): byte for byte in range(256)}
    tiktoken.registry.ENCODINGS["bytes"] = tiktoken.Encoding(
        "bytes", pat_str=r"[\s\S]", mergeable_ranks=vocabulary, special_tokens={}
    )
    tiktoken.model.MODEL_TO_ENCODING[model] = "bytes"
    return await embed(model)


if __name__ == "__main__":
    objects = {"person_by_schema": person_by_schema, "person_by_tool": person_by_tool}
    found = {
        "embeddings": embeddings,
        "embeddings_as_floats": embeddings_as_floats,
        "embeddings_of_token_ids": embeddings_of_token_ids,
    }
    main(ask, agent, objects, found)
