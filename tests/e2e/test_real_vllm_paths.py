"""The paths that a real vLLM has beside chat, completions and embeddings, with the SDKs that speak them."""

import json
from collections.abc import Iterator

import anthropic
import httpx2
import openai
import pytest
from anthropic import Anthropic
from anthropic.types import MessageParam, ToolParam
from openai import OpenAI
from openai.types.responses import FunctionToolParam

from tests.e2e.serve_vllm import CHAT_MODEL, CONTEXT, EMBEDDING_MODEL

pytestmark = pytest.mark.e2e

GREETING = "Hello! How can I help you today?"
SCHEMA: dict[str, object] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION: FunctionToolParam = {
    "type": "function",
    "name": "get_weather",
    "description": "Get the current weather of a city.",
    "parameters": SCHEMA,
    "strict": None,
}
TOOL: ToolParam = {
    "name": "get_weather",
    "description": "Get the current weather of a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
HELLO: list[MessageParam] = [{"role": "user", "content": "Hello"}]
TOO_LONG = "green river " * 800


@pytest.fixture
def claude(gateway_url: str) -> Iterator[Anthropic]:
    """Anthropic's SDK, pointed at the gateway."""
    with Anthropic(base_url=gateway_url, api_key="unused", max_retries=0, timeout=60) as client:
        yield client


def post(gateway_url: str, path: str, body: dict[str, object]) -> dict[str, object]:
    answer = httpx2.post(f"{gateway_url}{path}", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    found: dict[str, object] = answer.json()
    return found


# ---- responses


def test_a_response_whole_and_streamed(client: OpenAI) -> None:
    """Under the client's name for the model, with the same text and usage both ways."""
    whole = client.responses.create(model="gpt-4o-mini", input="Hello", temperature=0)
    with client.responses.stream(model="gpt-4o-mini", input="Hello", temperature=0) as events:
        kinds = [event.type for event in events]
        streamed = events.get_final_response()

    assert (whole.output_text, whole.model, whole.status) == (GREETING, "gpt-4o-mini", "completed")
    assert (streamed.output_text, streamed.model, streamed.usage) == (GREETING, "gpt-4o-mini", whole.usage)
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"


def test_a_response_calls_a_tool_as_codex_asks(client: OpenAI) -> None:
    """Stateless and streamed, then the tool's output with the history."""
    history: openai.types.responses.ResponseInputParam = [
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "What is the weather in Paris?"}],
        }
    ]
    with client.responses.stream(
        model=CHAT_MODEL,
        input=history,
        tools=[FUNCTION],
        store=False,
        include=["reasoning.encrypted_content"],
        parallel_tool_calls=False,
        temperature=0,
    ) as events:
        first = events.get_final_response()
    (call,) = [item for item in first.output if item.type == "function_call"]
    second = client.responses.create(
        model=CHAT_MODEL,
        input=[
            *history,
            {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments},
            {"type": "function_call_output", "call_id": call.call_id, "output": "21 degrees"},
        ],
        tools=[FUNCTION],
        store=False,
        temperature=0,
    )

    assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "Paris"})
    assert "21 degrees" in second.output_text


def test_a_response_that_does_not_fit_is_a_context_length_error(client: OpenAI) -> None:
    for streamed in (False, True):
        with pytest.raises(openai.BadRequestError) as refused:
            client.responses.create(model=CHAT_MODEL, input=TOO_LONG, stream=streamed)
        assert refused.value.code == "context_length_exceeded"


def test_an_unknown_response_is_named(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.responses.create(model=CHAT_MODEL, input="Hello", previous_response_id="resp_nope")

    assert refused.value.param == "previous_response_id"


# ---- messages


def test_a_message_whole_and_streamed(claude: Anthropic) -> None:
    whole = claude.messages.create(model="gpt-4o-mini", max_tokens=50, messages=HELLO)
    with claude.messages.stream(model="gpt-4o-mini", max_tokens=50, messages=HELLO) as events:
        streamed = events.get_final_message()

    for answer in (whole, streamed):
        (block,) = answer.content
        assert block.type == "text"
        assert block.text.startswith("Hello!")
        assert (answer.model, answer.stop_reason) == ("gpt-4o-mini", "end_turn")
        assert answer.usage.input_tokens > 0
        assert answer.usage.output_tokens > 0


def test_a_message_as_claude_code_asks(claude: Anthropic) -> None:
    """System blocks with cache marks, metadata, tools; the result of the call goes back as a block."""
    ask: list[MessageParam] = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is the weather in Paris?", "cache_control": {"type": "ephemeral"}}
            ],
        }
    ]
    with claude.messages.stream(
        model=CHAT_MODEL, max_tokens=80, messages=ask, tools=[TOOL], metadata={"user_id": "user_1"}
    ) as events:
        first = events.get_final_message()
    (call,) = [block for block in first.content if block.type == "tool_use"]
    counted = claude.messages.count_tokens(
        model=CHAT_MODEL, messages=ask, tools=[TOOL], system=[{"type": "text", "text": "Be short."}]
    )
    second = claude.messages.create(
        model=CHAT_MODEL,
        max_tokens=80,
        tools=[TOOL],
        messages=[
            *ask,
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call.id, "content": "21 degrees"}]},
        ],
    )

    assert first.stop_reason == "tool_use"
    assert (call.name, call.input) == ("get_weather", {"city": "Paris"})
    assert counted.input_tokens > 10
    assert second.content


def test_a_message_that_does_not_fit_says_so_as_anthropic_does(claude: Anthropic) -> None:
    with pytest.raises(anthropic.BadRequestError) as refused:
        claude.messages.create(model=CHAT_MODEL, max_tokens=5, messages=[{"role": "user", "content": TOO_LONG}])

    assert refused.value.type == "invalid_request_error"
    assert (refused.value.api_message or "").startswith("prompt is too long: ")


# ---- the others


def test_reranking_and_scoring(gateway_url: str) -> None:
    """The embedding model ranks too, under the name that is configured for that task."""
    documents = ["A boat on the sea", "Hello there"]
    ranked = post(gateway_url, "/v1/rerank", {"model": "ranker", "query": "Hello", "documents": documents})
    scored = post(gateway_url, "/v1/score", {"model": "ranker", "text_1": "Hello", "text_2": documents})

    results, data = ranked["results"], scored["data"]
    assert isinstance(results, list)
    assert isinstance(data, list)
    assert [result["index"] for result in results] == [1, 0]
    assert data[1]["score"] > data[0]["score"]
    assert ranked["model"] == scored["model"] == "ranker"


def test_tokens_and_back(gateway_url: str) -> None:
    counted = post(gateway_url, "/tokenize", {"model": "gpt-4o-mini", "prompt": "Hello world"})
    text = post(gateway_url, "/detokenize", {"model": "gpt-4o-mini", "tokens": counted["tokens"]})
    other = post(gateway_url, "/tokenize", {"model": EMBEDDING_MODEL, "prompt": "Hello world"})

    assert text == {"prompt": "Hello world"}
    assert counted["max_model_len"] == CONTEXT
    assert other["max_model_len"] != CONTEXT
