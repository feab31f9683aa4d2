"""LlamaIndex: ``OpenAILike`` with function calling, its ``FunctionAgent``, and ``OpenAILikeEmbedding``."""

from functools import cache

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILike

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

TOOL = FunctionTool.from_defaults(fn=weather, name="get_weather", description=DESCRIPTION)


@cache
def chat_model(model: str, **more: Json) -> Json:
    return OpenAILike(
        model=model,
        api_base=target().base_url,
        api_key="unused",
        is_chat_model=True,
        is_function_calling_model=True,
        max_retries=0,
        timeout=30,
        additional_kwargs={"stream_options": {"include_usage": True}},
        **more,
    )


async def ask(model: str, text: str, *, streamed: bool, tools: bool = False) -> Json:
    llm = chat_model(model)
    offered: Json = {"tools": [TOOL], "allow_parallel_tool_calls": True}
    usage: tuple[int, int] | None = None
    answer: Json = None
    if streamed:
        chunks = await (
            llm.astream_chat_with_tools(user_msg=text, **offered)
            if tools
            else llm.astream_chat([ChatMessage(content=text)])
        )
        async for answer in chunks:
            usage = usage_of(answer) or usage
    elif tools:
        answer = await llm.achat_with_tools(user_msg=text, **offered)
    else:
        answer = await llm.achat([ChatMessage(content=text)])
    calls = llm.get_tool_calls_from_response(answer, error_on_no_tool_call=False)
    return said(
        answer.message.content,
        [call(one.tool_id, one.tool_name, one.tool_kwargs) for one in calls],
        None,
        usage or usage_of(answer),
    )


def usage_of(answer: Json) -> tuple[int, int] | None:
    counts = answer.additional_kwargs
    return (counts["prompt_tokens"], counts["completion_tokens"]) if counts.get("completion_tokens") else None


async def agent(model: str, text: str, *, streamed: bool) -> Json:
    answer = await FunctionAgent(tools=[TOOL], llm=chat_model(model), streaming=streamed).run(user_msg=text)
    return said(answer.response.content, [], None, None)


async def person_by_schema(model: str) -> Json:
    llm = chat_model(model, should_use_structured_outputs=True)
    return (await llm.astructured_predict(Person, PromptTemplate(PERSON))).model_dump()


async def person_by_tool(model: str) -> Json:
    """The tool is required."""
    return (await chat_model(model).astructured_predict(Person, PromptTemplate(PERSON))).model_dump()


async def embeddings(model: str, **more: Json) -> Json:
    embedder = OpenAILikeEmbedding(
        model_name=model, api_base=target().base_url, api_key="unused", max_retries=0, **more
    )
    return numbers(await embedder.aget_text_embedding_batch(TEXTS))


async def embeddings_as_floats(model: str) -> Json:
    return await embeddings(model, additional_kwargs={"encoding_format": "float"})


if __name__ == "__main__":
    objects = {"person_by_schema": person_by_schema, "person_by_tool": person_by_tool}
    main(ask, agent, objects, {"embeddings": embeddings, "embeddings_as_floats": embeddings_as_floats})
