"""The scenarios, and the simulated engines that they run against."""

from typing import Any, Final

from engines.profile import EngineKind
from engines.simulator import Pace
from loadtests.scenario import Bursts, Clients, Path, Replicas, Scenario, Served, Shape, SlowReaders, Steady

FLEET: Final = (
    Replicas(
        "small",
        EngineKind.VLLM,
        2,
        ("vendor/small-1b", "vendor/vectors:embedding"),
        Pace(first_token=0.03, prefill=0.00004, inter_token=0.02, batch_slowdown=0.01, max_running=32),
    ),
    Replicas(
        "tight",
        EngineKind.VLLM,
        2,
        ("vendor/tight-7b",),
        Pace(first_token=0.05, prefill=0.00005, inter_token=0.015, batch_slowdown=0.03, max_running=8, max_requests=12),
    ),
    Replicas(
        "tools",
        EngineKind.TRTLLM,
        1,
        ("vendor/tools-3b",),
        Pace(first_token=0.04, prefill=0.00004, inter_token=0.015, batch_slowdown=0.02, max_running=32),
    ),
)

MODELS: Final = (
    Served("chat", "small", "vendor/small-1b"),
    Served("vectors", "small", "vendor/vectors", task="embedding"),
    Served("burst", "tight", "vendor/tight-7b"),
    Served("agent", "tools", "vendor/tools-3b"),
)

SENTENCE: Final = "The gateway forwards each request to an engine, and the answer comes back in pieces. "


def user(text: str, before: str = "") -> dict[str, Any]:
    """The messages of a short conversation, after `before` as context."""
    system = {"role": "system", "content": f"Be brief. {before}"}
    return {"messages": [system, {"role": "user", "content": text}]}


def stream(tokens: int) -> dict[str, Any]:
    """An answer of exactly that many tokens, in events."""
    return {"stream": True, "stream_options": {"include_usage": True}, "max_tokens": tokens, "ignore_eos": True}


def tool(name: str, about: str, **parameters: str) -> dict[str, Any]:
    """A function that the model may call."""
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters), "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": about, "parameters": schema}}


TOOLS: Final = [
    tool("get_weather", "The weather in a city, now. " + SENTENCE, city="The city's name"),
    tool("send_email", "Sends an email. " + SENTENCE, to="Who gets it", body="What it says"),
    tool("search", "Searches the documents. " + SENTENCE * 4, query="What to look for", folder="Where"),
    tool("read_file", "Reads a file. " + SENTENCE * 4, path="Which one", encoding="How it is encoded"),
]

QUESTION: Final = "What is the weather in Paris?"
ASKED: Final = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}
    ],
}
RESULT: Final = {"role": "tool", "tool_call_id": "call_1", "content": '{"degrees": 21}'}

STORY: Final = user("Tell me a story.")
CHAT: Final = Shape("chat, streamed", "chat", STORY | stream(40))

CHAT_MIX: Final = Scenario(
    "chat_mix",
    "Short conversations at random times: mostly streams, some plain answers, some text completions.",
    Steady(per_second=10),
    (
        Shape("chat, streamed", "chat", STORY | stream(40), weight=6),
        Shape("chat, plain", "chat", STORY | {"max_tokens": 30, "temperature": 0.7}, weight=3),
        Shape("completion", "chat", {"prompt": "Tell me a story."} | stream(30), Path.COMPLETIONS),
    ),
)
LONG_PROMPTS: Final = Scenario(
    "long_prompts",
    "Prompts of about 20 KB, which engines take time to read. Look at the first token.",
    Steady(per_second=4),
    (Shape("20 KB prompt", "chat", user("Tell me a story.", SENTENCE * 230) | stream(20)),),
)
AGENTS: Final = Scenario(
    "agents",
    "Agents with four tools: half of the requests lead to a tool call, half bring a tool's result.",
    Steady(per_second=6),
    (
        Shape("call", "agent", user(QUESTION) | {"tools": TOOLS, "stream": True}),
        Shape(
            "result",
            "agent",
            {"messages": [*user(QUESTION)["messages"], ASKED, RESULT], "tools": TOOLS, "stream": True},
        ),
    ),
)
EMBEDDINGS: Final = Scenario(
    "embeddings",
    "Four clients, each with the next batch of 16 texts as soon as it has the answer to the last one (about 120 KB).",
    Clients(4),
    (Shape("16 texts", "vectors", {"input": [f"{n}. {SENTENCE}" for n in range(16)]}, Path.EMBEDDINGS),),
    seconds=5.0,
)
BURSTS: Final = Scenario(
    "bursts",
    "Thirty streams asked for at the same instant, against engines that take 24 together: the rest is refused with "
    "503, through the gateway as directly.",
    Bursts(size=30, every=1.5),
    (Shape("burst", "burst", STORY | stream(30)),),
    expected=frozenset({"503"}),
)
SLOW_READERS: Final = Scenario(
    "slow_readers",
    "Eight clients that read 4 KB/s of a much faster stream, beside ordinary conversations. Look at the memory of the "
    "gateway, and at the conversations' latency.",
    Steady(per_second=6),
    (CHAT,),
    slow=SlowReaders(
        8, 4096, Shape("slow", "chat", STORY | stream(2000) | {"logprobs": True, "top_logprobs": 20}, weight=0)
    ),
)

SCENARIOS: Final = (CHAT_MIX, LONG_PROMPTS, AGENTS, EMBEDDINGS, BURSTS, SLOW_READERS)
