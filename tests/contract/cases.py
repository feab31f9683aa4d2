"""Which recordings are compared how, and which are not compared and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from engines.simulator import Answer, Markup, Script, SimulatedModel, Task, Turn

Scripts: TypeAlias = Mapping[str, Sequence[str]]

OTHER_API = "a path that the simulator does not have: the gateway does not route it yet"
NO_HTTP = "recorded as a description, not as a request; the simulator's own tests cover it where it applies"
SERVER_LIFE = "how a server process ends, which a simulated engine does not imitate; see Faults"
REAL_MODEL = "depends on the real model or its grammar"
REPOSITORY = "Triton's model repository and how it was started, which the simulator does not have"

OUT_OF_SCOPE: Mapping[str, Mapping[str, str]] = {
    "vllm": {
        "batch_chat": OTHER_API,
        "chat_echo_continue": REAL_MODEL,
        "chat_logprobs_emoji": "tokens that split a character, which the simulator's tokenizer has not",
        "chat_prompt_logprobs": "prompt log probabilities",
        "comp_echo_logprobs": "prompt log probabilities",
        "chat_render": OTHER_API,
        "bare_stream_forced_usage": "--enable-force-include-usage, which the simulator has not",
        "chat_invalid_echo_true": "prompt log probabilities",
        "chat_invalid_json_schema_bad": REAL_MODEL,
        "chat_invalid_logit_bias_over": REAL_MODEL,
        "chat_stop_token_ids": "token ids are those of the real tokenizer",
        "chat_structured_outputs_choice": REAL_MODEL,
        "chat_structured_outputs_regex": REAL_MODEL,
        "embed_cohere_v2": OTHER_API,
        "embed_get_openapi_paths": OTHER_API,
        "embed_pooling": OTHER_API,
        "generative_scoring": OTHER_API,
        "get_openapi_paths": OTHER_API,
        "queue_full": NO_HTTP,
        "queue_full_stream": NO_HTTP,
        "think_effort_none": REAL_MODEL,
        "think_json_schema": REAL_MODEL,
        "bare_sse_keepalive": "the client stops reading in the middle",
        "wire_bad_request_line": NO_HTTP,
        "wire_disconnect_nonstream": NO_HTTP,
        "wire_disconnect_stream": NO_HTTP,
        "wire_engine_crash": SERVER_LIFE,
        "wire_expect_100": "uvicorn answers it, not the application",
        "wire_half_close": NO_HTTP,
        "wire_keepalive_idle": NO_HTTP,
        "wire_large_body": NO_HTTP,
        "wire_large_headers": NO_HTTP,
        "wire_many_headers": NO_HTTP,
        "wire_pipelining": NO_HTTP,
        "wire_same_request_id": NO_HTTP,
        "wire_sigint_stream": SERVER_LIFE,
        "wire_sigterm_stream": SERVER_LIFE,
        "wire_sigterm_stream_timeout20": SERVER_LIFE,
    },
    "trtllm": {},
    "triton": {
        "client_disconnect_nonstream": NO_HTTP,
        "client_disconnect_stream": NO_HTTP,
        "keep_alive": NO_HTTP,
        "size_too_large": "the recording does not keep the body, and the server's limit was set low",
        "completions_midstream_error": "how many events still come before the cut is chance; the chat cases have it",
        "explicit_chat_loaded": REPOSITORY,
        "explicit_chat_not_loaded": REPOSITORY,
        "explicit_load": REPOSITORY,
        "explicit_load_again": REPOSITORY,
        "explicit_load_unknown": REPOSITORY,
        "explicit_models_before": REPOSITORY,
        "explicit_models_empty": REPOSITORY,
        "explicit_ready_with_no_model": REPOSITORY,
        "explicit_unload": REPOSITORY,
        "explicit_unload_again": REPOSITORY,
        "explicit_unload_all_then_ready_a": REPOSITORY,
        "llmapi_input_names_chat": REPOSITORY,
        "llmapi_input_names_stream": REPOSITORY,
        "nondecoupled_no_usage_chat": REPOSITORY,
        "nondecoupled_no_usage_stream": REPOSITORY,
        "notokenizer_chat": REPOSITORY,
        "openapi_head": OTHER_API,
    },
}
"""Case to reason, by engine. A case that is neither here nor compared fails the test, and so does one that is both."""

IGNORED: Mapping[str, frozenset[str]] = {
    "bare": frozenset({"usage.prompt_tokens_details", "metrics"}),
}
"""Members that a vLLM server shows because of flags which the simulator has not, by server: dotted paths."""

OTHER_TEXT = frozenset(
    {
        # A limit in tokens cuts them, and the simulator's tokens are not the real ones.
        "chat_chat_template_kwargs",
        "chat_max_both",
        "chat_max_completion_tokens",
        "chat_max_tokens_length",
        "chat_n2",
        "chat_n2_stream",
        "chat_truncate_prompt_tokens",
        "think_cut",
        "tool_required_cut",
        # The real model says nothing sensible to a bare or an overlong prompt.
        "chat_context_fill",
        "chat_context_prompt_plus_max",
        "comp_basic",
        "comp_best_of",
        "comp_default_max_tokens",
        "comp_list",
        "comp_logprobs_zero",
        "comp_token_ids",
    }
)
"""vLLM cases whose shapes are compared and whose texts are not."""


@dataclass(frozen=True, slots=True)
class Server:
    models: tuple[SimulatedModel, ...]
    api_keys: tuple[str, ...] = ()


def servers(engine: str, scripts: Scripts) -> Mapping[str, Server]:
    """The simulated counterparts of the recorded servers, by the name that the recordings give them."""
    match engine:
        case "vllm":
            return _vllm()
        case "trtllm":
            return _trtllm(scripted(scripts))
        case _:
            return _triton(scripted(scripts))


def _vllm() -> Mapping[str, Server]:
    tiny = SimulatedModel("tiny-chat", max_length=1024)
    return {
        "main": Server((_with(tiny, aliases=("tiny-alias",), adapters=("tiny-lora",)),)),
        "bare": Server((_with(tiny, parser=False),), ("secret-1", "secret-2")),
        "think": Server((_with(tiny, reasoning="qwen3"),)),
        "embed": Server((SimulatedModel("minilm", Task.EMBEDDING, max_length=256),)),
        "queue": Server((tiny,)),
    }


def _trtllm(script: Script) -> Mapping[str, Server]:
    model = SimulatedModel("served-model", script=script)
    return {
        "--tool_parser qwen3, guided_decoding_backend set": Server((model,)),
        "--tool_parser qwen3, no guided decoding backend": Server((_with(model, guided=False),)),
        "--tool_parser qwen3 --reasoning_parser qwen3": Server((_with(model, reasoning="qwen3"),)),
        "--reasoning_parser deepseek-r1": Server((_with(model, parser=False, reasoning="deepseek-r1"),)),
        "no --tool_parser, no --reasoning_parser": Server((_with(model, parser=False, guided=False),)),
    }


def _triton(script: Script) -> Mapping[str, Server]:
    def models(markup: Markup, *adapters: str, parser: bool = True) -> tuple[SimulatedModel, ...]:
        chat = SimulatedModel(
            "vllm_chat", adapters=adapters, markup=markup, parser=parser, custom_metrics=False, script=script
        )
        python = _with(chat, name="trt_py", backend="python", adapters=())
        embed = SimulatedModel("embed", Task.EMBEDDING, custom_metrics=False, dimensions=8)
        return (chat, python, embed)

    llama = Server(models(Markup.LLAMA3, "doll", "sheep"))
    restricted = ("inference:infer-key:s3cret", "model-repository:admin-key:adm1n")
    return {
        "": llama,
        "--tokenizer <local> --tool-call-parser llama3 --lora-separator _lora_": llama,
        "--tokenizer <local> --tool-call-parser mistral": Server(models(Markup.MISTRAL)),
        "no --tokenizer": Server(models(Markup.LLAMA3)),
        "--tokenizer <local>, no tool-call parser, --openai-restricted-api inference infer-key s3cret "
        "--openai-restricted-api model-repository admin-key adm1n --http-max-input-size 4096": Server(
            models(Markup.LLAMA3, parser=False), restricted
        ),
    }


def scripted(scripts: Scripts) -> Script:
    """The recordings' scripted engine: `[[name]]` in the text chooses what it says, token by token."""
    cut = {"length", "q_cut", "l3_cut"}

    def script(turn: Turn) -> Answer:
        _, found, rest = turn.text.partition("[[")
        name = rest.partition("]]")[0] if found else "default"
        pieces = tuple(scripts[name])
        fails = {"fail0": 0, "fail3": 3}.get(name)
        error = "CUDA out of memory (scripted)"
        return Answer((), pieces, "length" if name in cut else "stop", fails, error, limited=False)

    return script


def _with(model: SimulatedModel, **changes: object) -> SimulatedModel:
    fields = {name: getattr(model, name) for name in SimulatedModel.__slots__}
    return SimulatedModel(**(fields | changes))
