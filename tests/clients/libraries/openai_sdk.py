"""The OpenAI SDK for Python, release 2 or 3: the same calls with either."""

from functools import cache

from openai import AsyncOpenAI, pydantic_function_tool

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

SCHEMA: Json = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL: Json = {
    "type": "function",
    "function": {"name": "get_weather", "description": DESCRIPTION, "parameters": SCHEMA, "strict": True},
}


@cache
def sdk() -> AsyncOpenAI:
    return AsyncOpenAI(base_url=target().base_url, api_key="unused", max_retries=0, timeout=30)


async def complete(messages: list[Json], *, streamed: bool, tools: bool, **more: Json) -> Json:
    """The whole answer; a stream goes through the SDK's own accumulator, which also checks the arguments."""
    if tools:
        more["tools"] = [TOOL]
    if not streamed:
        return await sdk().chat.completions.create(messages=messages, **more)
    more["stream_options"] = {"include_usage": True}
    async with sdk().chat.completions.stream(messages=messages, **more) as stream:
        async for _ in stream:
            pass
        return await stream.get_final_completion()


def read(completion: Json) -> Json:
    (choice,) = completion.choices
    usage = completion.usage
    return said(
        choice.message.content,
        [call(one.id, one.function.name, one.function.arguments) for one in choice.message.tool_calls or ()],
        choice.finish_reason,
        usage and (usage.prompt_tokens, usage.completion_tokens),
    )


async def ask(model: str, text: str, *, streamed: bool, tools: bool = False) -> Json:
    messages: list[Json] = [{"role": "user", "content": text}]
    return read(await complete(messages, streamed=streamed, tools=tools, model=model))


async def agent(model: str, text: str, *, streamed: bool) -> Json:
    """The history is the SDK's own messages, with all their members."""
    messages: list[Json] = [{"role": "user", "content": text}]
    completion = await complete(messages, streamed=streamed, tools=True, model=model)
    messages.append(completion.choices[0].message.model_dump())
    for one in read(completion)["calls"]:
        messages.append({"role": "tool", "tool_call_id": one["id"], "content": weather(**one["arguments"])})
    return read(await complete(messages, streamed=streamed, tools=True, model=model))


async def person_by_schema(model: str) -> Json:
    messages: Json = [{"role": "user", "content": PERSON}]
    answer = await sdk().chat.completions.parse(model=model, messages=messages, response_format=Person)
    found = answer.choices[0].message.parsed
    return found and found.model_dump()


async def person_by_schema_streamed(model: str) -> Json:
    messages: Json = [{"role": "user", "content": PERSON}]
    completion = await complete(messages, streamed=True, tools=False, model=model, response_format=Person)
    return completion.choices[0].message.parsed.model_dump()


async def person_by_tool(model: str) -> Json:
    """The tool is required, and its schema is strict."""
    messages: Json = [{"role": "user", "content": PERSON}]
    tool: Json = pydantic_function_tool(Person)
    answer: Json = await sdk().chat.completions.parse(
        model=model, messages=messages, tools=[tool], tool_choice="required"
    )
    (found,) = answer.choices[0].message.tool_calls
    return found.function.parsed_arguments.model_dump()


async def embeddings(model: str, **more: Json) -> Json:
    """Base64 is what this SDK asks for by itself."""
    answer = await sdk().embeddings.create(model=model, input=TEXTS, **more)
    return numbers([one.embedding for one in answer.data])


async def embeddings_as_floats(model: str) -> Json:
    return await embeddings(model, encoding_format="float")


if __name__ == "__main__":
    objects = {
        "person_by_schema": person_by_schema,
        "person_by_schema_streamed": person_by_schema_streamed,
        "person_by_tool": person_by_tool,
    }
    main(ask, agent, objects, {"embeddings": embeddings, "embeddings_as_floats": embeddings_as_floats})
