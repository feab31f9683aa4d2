"""Whatever a client sends, a simulated frontend answers in its engine's way instead of failing itself."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.simulator import Pace, SimulatedModel, Task
from engines.simulator.build import FRONTENDS
from engines.simulator.load import Load
from engines.simulator.wire import Reply, Request, Work

MODELS = (SimulatedModel("tiny", adapters=("lora",)), SimulatedModel("embed", Task.EMBEDDING))
PATHS = (
    "/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/messages",
    "/v1/messages/count_tokens", "/v1/rerank", "/v1/score", "/tokenize", "/detokenize",
)  # fmt: skip
NAMES = (
    "messages", "model", "tools", "tool_choice", "stream", "stream_options", "stop", "n", "max_tokens",
    "max_completion_tokens", "temperature", "top_p", "logprobs", "top_logprobs", "logit_bias", "response_format",
    "prompt", "echo", "suffix", "best_of", "input", "encoding_format", "dimensions", "truncate_prompt_tokens",
    "chat_template_kwargs", "reasoning_effort", "ignore_eos", "include_stop_str_in_output", "presence_penalty",
    "min_p", "seed", "parallel_tool_calls", "return_token_ids", "function_call", "cache_salt", "request_id",
    "instructions", "max_output_tokens", "previous_response_id", "system", "stop_sequences", "thinking", "query",
    "documents", "top_n", "text_1", "text_2", "tokens",
)  # fmt: skip

plain = (
    st.none()
    | st.booleans()
    | st.integers(-3, 40)
    | st.floats()
    | st.sampled_from(["", "x", "auto", "required", "tiny", "text", "tool_use", "tool_result", "function_call", "any"])
)


def members(inner: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    names = ["type", "function", "name", "content", "role", "text", "tool_calls", "arguments", "parameters", "5"]
    names += ["input_schema", "input", "tool_use_id", "call_id", "output"]
    return st.dictionaries(st.sampled_from(names), inner, max_size=4)


values = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | members(inner), max_leaves=6)
messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "system", "assistant", "tool", "developer", "function"])},
        optional={"content": values, "tool_calls": values, "tool_call_id": values, "name": values},
    ),
    max_size=3,
)
tools = st.lists(
    st.fixed_dictionaries(
        {"type": st.just("function"), "function": st.fixed_dictionaries({"name": st.sampled_from(["a", "b"])})}
    ),
    min_size=1,
    max_size=2,
)
bodies = st.builds(
    lambda base, extra: {**base, **extra},
    st.fixed_dictionaries(
        {"model": st.sampled_from(["tiny", "embed", "tiny_lora_lora", "nope"])},
        optional={"messages": messages, "tools": tools, "prompt": values, "input": values},
    ),
    st.dictionaries(st.sampled_from(NAMES), values, max_size=4),
)


@pytest.mark.parametrize("kind", list(FRONTENDS))
@pytest.mark.parametrize("path", PATHS)
@given(body=bodies | values)
def test_every_body_has_an_answer(kind: str, path: str, body: Mapping[str, object]) -> None:
    """A reply or work, never an exception; what is not work has a status the engine is known to give."""
    frontend = FRONTENDS[kind](MODELS, Load([model.name for model in MODELS], Pace()), ())  # type: ignore[index]
    raw = json.dumps(body).encode()

    answer = frontend.respond(Request("POST", path, {b"content-type": b"application/json"}, raw), unhealthy=False)

    assert isinstance(answer, Reply | Work)
    if isinstance(answer, Reply):
        assert answer.status in {200, 400, 404, 405, 422, 500}
        assert answer.body
