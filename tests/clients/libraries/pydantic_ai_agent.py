"""Pydantic AI: ``OpenAIChatModel``, its ``Agent``, and ``Embedder``."""

from functools import cache

from pydantic_ai import Agent, Embedder, ModelRequest, NativeOutput, ToolDefinition
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

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

SCHEMA: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@cache
def chat_model(model: str) -> Json:
    return OpenAIChatModel(model, provider=OpenAIProvider(base_url=target().base_url, api_key="unused"))


def read(response: Json) -> Json:
    calls = [call(one.tool_call_id, one.tool_name, one.args) for one in response.tool_calls]
    return said(
        response.text,
        calls,
        (response.provider_details or {}).get("finish_reason"),
        (response.usage.input_tokens, response.usage.output_tokens),
    )


async def ask(model: str, text: str, *, streamed: bool, tools: bool = False) -> Json:
    offered = [ToolDefinition(name="get_weather", description=DESCRIPTION, parameters_json_schema=SCHEMA)]
    parameters = ModelRequestParameters(function_tools=offered if tools else [], allow_text_output=True)
    messages = [ModelRequest.user_text_prompt(text)]
    if not streamed:
        return read(await model_request(chat_model(model), messages, model_request_parameters=parameters))
    async with model_request_stream(chat_model(model), messages, model_request_parameters=parameters) as stream:
        async for _ in stream:
            pass
        return read(stream.get())


async def get_weather(city: str) -> str:
    return weather(city)


async def agent(model: str, text: str, *, streamed: bool) -> Json:
    assistant: Json = Agent(chat_model(model), tools=[get_weather])
    if not streamed:
        return read((await assistant.run(text)).response)
    async with assistant.run_stream(text) as result:
        await result.get_output()
        return read(result.response)


async def person_by_schema(model: str) -> Json:
    assistant: Json = Agent(chat_model(model), output_type=NativeOutput(Person), retries=0)
    return (await assistant.run(PERSON)).output.model_dump()


async def person_by_tool(model: str) -> Json:
    """The tool is required."""
    assistant: Json = Agent(chat_model(model), output_type=Person, retries=0)
    return (await assistant.run(PERSON)).output.model_dump()


async def person_by_tool_streamed(model: str) -> Json:
    assistant: Json = Agent(chat_model(model), output_type=Person, retries=0)
    async with assistant.run_stream(PERSON) as result:
        return (await result.get_output()).model_dump()


async def embeddings(model: str) -> Json:
    provider = OpenAIProvider(base_url=target().base_url, api_key="unused")
    result = await Embedder(OpenAIEmbeddingModel(model, provider=provider)).embed_documents(TEXTS)
    return numbers(result.embeddings)


if __name__ == "__main__":
    found = {
        "person_by_schema": person_by_schema,
        "person_by_tool": person_by_tool,
        "person_by_tool_streamed": person_by_tool_streamed,
    }
    main(ask, agent, found, {"embeddings": embeddings})
