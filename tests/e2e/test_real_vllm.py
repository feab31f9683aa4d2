"""Applications that use the official OpenAI SDK get from a real vLLM what they would get from OpenAI.

The chat model has learned a few dialogues by heart (``build_tiny_model.py``), so its answers are known.
"""

import json
from typing import Protocol

import httpx2
import openai
import pytest
from openai import OpenAI
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageFunctionToolCall, ChatCompletionToolParam

from tests.e2e.conftest import Engine
from tests.e2e.serve_vllm import CHAT_MODEL, CONTEXT, EMBEDDING_MODEL

pytestmark = pytest.mark.e2e


class Asking(Protocol):
    def __call__(self, client: OpenAI, prompt: str, /, *tools: ChatCompletionToolParam) -> list[tuple[str, object]]: ...


GREETING = "Hello! How can I help you today?"

GET_WEATHER: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
GET_TIME: ChatCompletionToolParam = {
    "type": "function",
    "function": {
        "name": "get_time",
        "description": "Get the current time.",
        "parameters": {"type": "object", "properties": {}},
    },
}


def stream(
    client: OpenAI, prompt: str, *tools: ChatCompletionToolParam, model: str = CHAT_MODEL
) -> list[ChatCompletionChunk]:
    return list(
        client.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": prompt}],
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
            tools=tools or openai.omit,
        )
    )


def calls_of(client: OpenAI, prompt: str, *tools: ChatCompletionToolParam) -> list[tuple[str, object]]:
    """The names and arguments of the tool calls of a whole answer."""
    answer = client.chat.completions.create(
        model=CHAT_MODEL, messages=[{"role": "user", "content": prompt}], temperature=0, tools=tools
    )
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.tool_calls
    calls = [call for call in choice.message.tool_calls if isinstance(call, ChatCompletionMessageFunctionToolCall)]
    assert len({call.id for call in calls}) == len(calls)
    return [(call.function.name, json.loads(call.function.arguments)) for call in calls]


def streamed_calls_of(client: OpenAI, prompt: str, *tools: ChatCompletionToolParam) -> list[tuple[str, object]]:
    """The names and arguments of the tool calls of a stream, put together the way applications do it."""
    names: dict[int, str] = {}
    arguments: dict[int, str] = {}
    reasons = []
    for chunk in stream(client, prompt, *tools):
        for choice in chunk.choices:
            reasons.append(choice.finish_reason)
            for delta in choice.delta.tool_calls or []:
                assert delta.function
                if delta.function.name:
                    names[delta.index] = delta.function.name
                arguments[delta.index] = arguments.get(delta.index, "") + (delta.function.arguments or "")
    assert [reason for reason in reasons if reason] == ["tool_calls"]
    return [(names[index], json.loads(arguments[index])) for index in sorted(names)]


def test_a_chat_answer_has_text_finish_reason_and_usage(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model=CHAT_MODEL, messages=[{"role": "user", "content": "Hello"}], temperature=0
    )

    assert answer.choices[0].message.content == GREETING
    assert answer.choices[0].finish_reason == "stop"
    assert answer.id.startswith("chatcmpl-")
    assert answer.usage
    assert answer.usage.prompt_tokens > 0
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_stream_has_the_same_text_and_ends_with_its_usage(client: OpenAI) -> None:
    chunks = stream(client, "Hello")

    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    reasons = [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason]
    assert text == GREETING
    assert reasons == ["stop"]
    assert chunks[0].choices[0].delta.role == "assistant"
    assert len({chunk.id for chunk in chunks}) == 1
    assert [chunk.usage is not None for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-1].choices == []


def test_characters_that_are_split_over_tokens_arrive_whole(client: OpenAI) -> None:
    text = "".join(choice.delta.content or "" for chunk in stream(client, "Send me emoji.") for choice in chunk.choices)

    assert text.startswith("Hi 👋🏽! 日本語")
    assert "�" not in text


def test_a_text_completion_answers(client: OpenAI) -> None:
    answer = client.completions.create(
        model=CHAT_MODEL,
        prompt="<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n",
        temperature=0,
        max_tokens=40,
    )

    assert answer.choices[0].text == GREETING
    assert answer.id.startswith("cmpl-")


@pytest.mark.parametrize("ask", [calls_of, streamed_calls_of])
def test_a_tool_is_called_with_its_arguments(client: OpenAI, ask: Asking) -> None:
    assert ask(client, "What is the weather in Paris?", GET_WEATHER) == [("get_weather", {"city": "Paris"})]


@pytest.mark.parametrize("ask", [calls_of, streamed_calls_of])
def test_a_tool_without_parameters_is_called(client: OpenAI, ask: Asking) -> None:
    assert ask(client, "What time is it?", GET_TIME) == [("get_time", {})]


@pytest.mark.parametrize("ask", [calls_of, streamed_calls_of])
def test_several_tools_are_called_at_once(client: OpenAI, ask: Asking) -> None:
    assert ask(client, "What is the weather in Paris and Tokyo?", GET_WEATHER) == [
        ("get_weather", {"city": "Paris"}),
        ("get_weather", {"city": "Tokyo"}),
    ]


def test_a_tool_result_is_understood(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model=CHAT_MODEL,
        messages=[
            {"role": "user", "content": "What is the weather in Paris?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "21 degrees"},
        ],
        temperature=0,
        tools=[GET_WEATHER],
    )

    assert answer.choices[0].message.content == "It is 21 degrees in Paris."


def test_every_chunk_and_answer_names_the_model_as_the_client_does(client: OpenAI) -> None:
    answer = client.chat.completions.create(
        model="gpt-4o-mini", messages=[{"role": "user", "content": "Hello"}], temperature=0
    )
    chunks = stream(client, "Hello", model="gpt-4o-mini")

    assert answer.model == "gpt-4o-mini"
    assert {chunk.model for chunk in chunks} == {"gpt-4o-mini"}


def test_embeddings_are_the_same_numbers_in_both_encodings(client: OpenAI) -> None:
    # The SDK asks for base64 unless it is told otherwise.
    packed = client.embeddings.create(model=EMBEDDING_MODEL, input=["a cat", "a kitten", "tax law"])
    plain = client.embeddings.create(
        model=EMBEDDING_MODEL, input=["a cat", "a kitten", "tax law"], encoding_format="float"
    )

    assert [item.index for item in packed.data] == [0, 1, 2]
    for one, other in zip(packed.data, plain.data, strict=True):
        assert len(one.embedding) == 384
        assert one.embedding == pytest.approx(other.embedding, abs=1e-4)
    cat, kitten, law = (item.embedding for item in packed.data)
    assert dot(cat, kitten) > dot(cat, law) + 0.2
    assert packed.usage.prompt_tokens > 0


def dot(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_embeddings_answer_with_the_alias_that_was_asked_for(client: OpenAI) -> None:
    assert client.embeddings.create(model="text-embedding-3-small", input="a cat").model == "text-embedding-3-small"


def test_models_and_their_aliases_are_listed(client: OpenAI) -> None:
    names = {model.id for model in client.models.list()}

    assert names == {CHAT_MODEL, "gpt-4o-mini", EMBEDDING_MODEL, "text-embedding-3-small", "unreachable", "ranker"}
    assert client.models.retrieve("gpt-4o-mini").id == "gpt-4o-mini"


def test_an_unknown_model_is_not_found(client: OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as chat:
        client.chat.completions.create(model="no-such-model", messages=[{"role": "user", "content": "Hello"}])
    with pytest.raises(openai.NotFoundError) as lookup:
        client.models.retrieve("no-such-model")

    assert chat.value.code == "model_not_found"
    assert chat.value.param == "model"
    assert lookup.value.code == "model_not_found"


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("words", [CONTEXT + 200, 200_000], ids=["long", "very-long"])
def test_a_prompt_that_does_not_fit_is_refused(client: OpenAI, streamed: bool, words: int) -> None:
    with pytest.raises(openai.BadRequestError) as refusal:
        client.chat.completions.create(
            model=CHAT_MODEL, messages=[{"role": "user", "content": "apple " * words}], stream=streamed
        )

    assert refusal.value.code == "context_length_exceeded"
    assert refusal.value.type == "invalid_request_error"


def test_embedding_models_do_not_chat(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refusal:
        client.chat.completions.create(model=EMBEDDING_MODEL, messages=[{"role": "user", "content": "Hello"}])

    assert EMBEDDING_MODEL in refusal.value.message


def test_an_engine_that_is_down_is_service_unavailable(client: OpenAI) -> None:
    with pytest.raises(openai.InternalServerError) as failure:
        client.chat.completions.create(model="unreachable", messages=[{"role": "user", "content": "Hello"}])

    assert failure.value.status_code == 503
    assert failure.value.code == "engine_unavailable"
    assert float(failure.value.response.headers["retry-after"]) > 0


def test_the_gateway_counts_what_it_served(client: OpenAI, engine: Engine, gateway_url: str) -> None:
    client.chat.completions.create(model=CHAT_MODEL, messages=[{"role": "user", "content": "Hello"}])

    lines = httpx2.get(f"{gateway_url}/metrics").text.splitlines()
    served = [line for line in lines if line.startswith("turnout_requests_total{") and f'model="{CHAT_MODEL}"' in line]
    assert sum(float(line.rpartition(" ")[2]) for line in served) >= 1
