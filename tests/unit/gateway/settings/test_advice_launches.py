# ruff: noqa: E501 - whole messages are compared
"""Launch settings that are odd, or do not keep what the routes promise: each is told at its place, and no good one is."""

from collections.abc import Callable

import pytest

from gateway.settings import Loaded

VLLM = "engines: {{e: {{kind: vllm, urls: [http://127.0.0.1:8000], {engine}launch: {{model: org/m, {launch}}}}}}}\nmodels: {{m: {{engine: e, model: org/m, {model}}}}}"
TRTLLM = VLLM.replace("kind: vllm", "kind: trtllm")
TRITON = "engines: {{e: {{kind: triton, urls: [http://127.0.0.1:9000], {engine}launch: {{repository: ./r, {launch}}}}}}}\nmodels: {{m: {{engine: e, {model}}}}}"


def case(text: str, launch: str = "", model: str = "", engine: str = "") -> str:
    return text.format(launch=launch, model=model, engine=f"{engine}, " if engine else "")


FOUND = {
    # odd by themselves
    "a share that nothing looks at": (
        case(VLLM, "gpu_memory_utilization: 0.9, kv_cache_memory_bytes: 4GiB"),
        "no-effect",
        "e.launch.gpu_memory_utilization: has no effect: kv_cache_memory_bytes says how large the cache is",
    ),
    "GPUs for the processor": (
        case(VLLM, "device: cpu, devices: [0]"),
        "no-effect",
        "e.launch.devices: has no effect: it computes on the processor",
    ),
    "the processor's cache on GPUs": (
        case(VLLM, "cpu_kv_cache: 4GiB"),
        "no-effect",
        "e.launch.cpu_kv_cache: has no effect: it computes on GPUs",
    ),
    "limits of adapters without adapters": (
        case(VLLM, "max_loras: 2"),
        "no-effect",
        "e.launch.max_loras: has no effect: there are no adapters",
    ),
    "a parser without chat": (
        case(VLLM, "runner: pooling, reasoning_parser: qwen3", "task: embedding"),
        "no-effect",
        "e.launch.reasoning_parser: has no effect: runner: pooling has no chat",
    ),
    "fewer tokens than requests": (
        case(VLLM, "max_num_seqs: 512, max_num_batched_tokens: 256"),
        "contradiction",
        "e.launch.max_num_batched_tokens: vLLM refuses to start",
    ),
    "an unknown flag": (
        case(VLLM, "extra_args: [--max-modle-len, 8k]"),
        "unknown-flag",
        "e.launch.extra_args: vllm serve 0.32 has no flag --max-modle-len (did you mean --max-model-len?)",
    ),
    "a removed flag": (
        case(VLLM, "extra_args: [--task, embed]"),
        "unknown-flag",
        "e.launch.extra_args: vllm serve 0.32 has no flag --task",
    ),
    "a flag with a wrong value": (
        case(VLLM, "extra_args: [--tool-strict-level, high]"),
        "flag-value",
        '--tool-strict-level does not take "high"',
    ),
    "a key with a value that the flag does not take": (
        case(VLLM, "kv_cache_dtype: fp4"),
        "flag-value",
        'e.launch.kv_cache_dtype: --kv-cache-dtype does not take "fp4"',
    ),
    "a rank that vLLM does not have": (
        case(VLLM, "loras: {a: /a}, max_lora_rank: 24"),
        "flag-value",
        'e.launch.max_lora_rank: --max-lora-rank does not take "24"',
    ),
    "a key on the command line": (
        case(VLLM, "extra_args: [--api-key, sk-marked]"),
        "secret-printed",
        "e.launch.extra_args: what follows --api-key is printed wherever the command is: it is no place for a secret (api_key_file: /run/secrets/KEY)",
    ),
    "a guarded part of Triton on the command line": (
        case(TRITON, "extra_args: [--openai-restricted-api, inference, infer-key, sk-marked]"),
        "secret-printed",
        "it is no place for a secret (restricted: ",
    ),
    "a flag and its value as one word": (
        case(VLLM, "extra_args: ['--api-key sk-marked']"),
        "unknown-flag",
        "e.launch.extra_args: vllm serve 0.32 has no flag --api-key … (write --api-key and its value as two words)",
    ),
    "a flag that a key says already": (
        case(VLLM, "max_num_seqs: 8, extra_args: [--max-num-seqs, 9]"),
        "given-twice",
        "--max-num-seqs is also what the key max_num_seqs says",
    ),
    "an unknown parser": (
        case(VLLM, "tool_parser: hermis"),
        "unknown-parser",
        'e.launch.tool_parser: vLLM 0.32 has no tool parser "hermis" (did you mean hermes?)',
    ),
    "vLLM's parser on trtllm-serve": (
        case(TRTLLM, "tool_parser: llama3_json"),
        "unknown-parser",
        'trtllm-serve has no tool parser "llama3_json"',
    ),
    "a flag that settings win over": (
        case(TRTLLM, "max_num_tokens: 8K, settings: {max_num_tokens: 4096}"),
        "no-effect",
        "e.launch.max_num_tokens: has no effect: settings.max_num_tokens wins over it",
    ),
    "chat's flags on an embedding server": (
        case(TRTLLM, "task: embedding, max_seq_len: 8K"),
        "no-effect",
        "e.launch.max_seq_len: has no effect: trtllm-serve embeddings does not have it",
    ),
    "models to load where all load": (
        case(TRITON, "load_models: [m]"),
        "no-effect",
        "e.launch.load_models: has no effect: all models load",
    ),
    "a port of KServe without KServe": (
        case(TRITON, "kserve_http_port: 8000"),
        "no-effect",
        "e.launch.kserve_http_port: has no effect: KServe is off",
    ),
    "adapters that nobody can ask for": (
        case(TRITON, "models: {m: {backend: vllm, model: org/m, loras: {a: /a}}}"),
        "lora-separator",
        "nobody can ask for the adapters of m",
    ),
    "requests as another backend has them": (
        case(TRITON, "backend: tensorrtllm, models: {m: {backend: vllm, model: org/m}}"),
        "backend-differs",
        "m runs on another backend",
    ),
    "a model to load that is not there": (
        case(TRITON, "model_control_mode: explicit, load_models: [n], models: {m: {backend: vllm, model: org/m}}"),
        "unknown-model",
        "n is not among models",
    ),
    # against the routes
    "tools for the engine to read, without a parser": (
        case(VLLM, model="tools: {parse: engine}"),
        "unread-tools",
        "m.tools.parse: tool calls are read by nobody: e has no tool parser (its launch names none)",
    ),
    "tools in a format that nobody knows": (
        case(VLLM, model="tools: {parse: auto}"),
        "unread-tools",
        "m.tools: e is started without a tool parser, and nobody knows how this model writes tool calls",
    ),
    "a format that the engine's parser does not read": (
        case(VLLM, "tool_parser: hermes", "tools: {format: llama3_json}"),
        "format-differs",
        "m.tools.format: e is started with tool parser hermes (hermes), and the model writes llama3_json",
    ),
    "the same where the engine is to read it": (
        case(VLLM, "tool_parser: hermes", "tools: {format: llama3_json, parse: engine}"),
        "unread-tools",
        "m.tools.format: e reads calls as hermes",
    ),
    "another parser than the gateway is told": (
        case(VLLM, "tool_parser: hermes", engine="parser: mistral"),
        "parser-differs",
        "e.parser: the engine is started with tool parser hermes, and `parser` says mistral",
    ),
    "a parser that the launch does not have": (
        case(VLLM, engine="parser: hermes"),
        "parser-differs",
        "the engine is started with tool parser none",
    ),
    "embeddings from an engine that generates": (
        case(VLLM, "runner: generate", "task: embedding"),
        "task-differs",
        "m.task: e is started for chat (runner: generate), and has no embedding",
    ),
    "embeddings from an engine with a tool parser": (
        case(VLLM, "tool_parser: hermes", "task: embedding"),
        "task-differs",
        "m.task: e is started for chat (tool_parser: hermes)",
    ),
    "ranking on an engine with a tool parser": (
        case(VLLM, "tool_parser: hermes", "task: rerank"),
        "task-differs",
        "and has no rerank",
    ),
    "chat with a pooling engine": (
        case(VLLM, "runner: pooling"),
        "task-differs",
        "m: e is started without chat (runner: pooling)",
    ),
    "chat with trtllm-serve embeddings": (
        case(TRTLLM, "task: embedding"),
        "task-differs",
        "m: e is started without chat (task: embedding)",
    ),
    "embeddings from Triton without its vLLM backend": (
        case(TRITON, "models: {m: {backend: tensorrtllm, model: org/m}}", "task: embedding", "embeddings: true"),
        "task-differs",
        "m.task: e is started for chat (backend: tensorrtllm)",
    ),
    "a shorter context than promised": (
        case(VLLM, "max_model_len: 8K", "context: 32768"),
        "context",
        "m.context: e is started for 8192 tokens, prompt and answer (8192 at most, or a longer launch)",
    ),
    "the same on trtllm-serve": (
        case(TRTLLM, "max_seq_len: 8K", "context: 32768"),
        "context",
        "m.context: e is started for 8192 tokens",
    ),
    "the same in a Triton repository": (
        case(TRITON, "models: {m: {backend: vllm, model: org/m, max_model_len: 4K}}", "context: 8192"),
        "context",
        "m.context: e is started for 4096 tokens",
    ),
    "a name that the engine is not started with": (
        case(VLLM, "served_names: [small]"),
        "served-name",
        'm.model: e is not started with a model "org/m" (its names: small)',
    ),
    "a name that the repository does not have": (
        case(TRITON, "models: {n: {backend: vllm, model: org/m}}"),
        "served-name",
        'm.model: e is not started with a model "m"',
    ),
    "a key that the gateway does not send": (
        case(VLLM, "api_key_file: /run/secrets/k"),
        "key-missing",
        "e.launch.api_key_file: the engine asks for a key that the gateway does not have (api_key: file:/run/secrets/k beside launch)",
    ),
    "a header that the gateway does not send": (
        case(TRITON, "restricted: [{apis: [inference], header: x-k, value_file: /k}]"),
        "key-missing",
        "e.launch.restricted[0]: the gateway does not send the header x-k",
    ),
    "connections kept longer than the launch says": (
        case(VLLM, "keep_alive: 10", engine="keep_alive: 30s"),
        "keep-alive",
        "e.keep_alive: vLLM closes idle connections after 10s",
    ),
    "signs of life that come too late": (
        case(VLLM, "sse_keep_alive_interval: 90"),
        "contradicting-timeouts",
        "e.launch.sse_keep_alive_interval: comes too late: a silent stream ends after 60s",
    ),
    "more requests than are computed at once": (
        case(VLLM, "max_num_seqs: 128", engine="max_in_flight: 256"),
        "in-flight",
        "e.max_in_flight: more than the engine computes at once (128)",
    ),
    "more requests than are taken in": (
        case(VLLM, "max_num_queued_reqs: 100", engine="max_in_flight: 256"),
        "in-flight",
        "e.max_in_flight: the engine answers 503 from 100 requests on",
    ),
    "more requests than a batch": (
        case(TRTLLM, "max_batch_size: 64", engine="max_in_flight: 65"),
        "in-flight",
        "e.max_in_flight: more than the engine computes at once (64)",
    ),
    "another port than the URL's": (
        case(VLLM, "port: 8001"),
        "unreachable",
        "e.launch.port: no URL of the engine has this port: http://127.0.0.1:8000",
    ),
    "loopback for another machine": (
        case(VLLM, "host: 127.0.0.1").replace("//127.0.0.1:8000", "//gpu1:8000"),
        "unreachable",
        "e.launch.host: listens on this machine's loopback only, and the engine's URL names gpu1",
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_launch_that_is_probably_not_meant_is_told(name: str, read: Callable[..., Loaded]) -> None:
    text, rule, message = FOUND[name]

    warned = [(problem.rule, str(problem)) for problem in read(text).warnings]
    assert [found for found, said in warned if message in said] == [rule], warned


TWO = """\
engines:
  a: {{kind: vllm, urls: ["http://{a}:8000"], launch: {{model: org/a, {first}}}}}
  b: {{kind: {kind}, urls: ["http://{b}:8001"], launch: {{model: org/b, {second}}}}}
models: {{a: {{engine: a, model: org/a}}, b: {{engine: b, model: org/b}}}}
"""


def two(first: str, second: str, a: str = "127.0.0.1", b: str = "localhost", kind: str = "vllm") -> str:
    return TWO.format(first=first, second=second, a=a, b=b, kind=kind)


CROWDED = {
    "two that take what they take by default": (
        two("devices: [0]", "devices: [0]"),
        "b.launch.gpu_memory_utilization: GPU 0 has not that much memory: a 92%, b 92%",
    ),
    "shares that add up to more": (
        two("devices: [0, 1], gpu_memory_utilization: 0.6", "devices: [1], gpu_memory_utilization: 0.5"),
        "b.launch.gpu_memory_utilization: GPU 1 has not that much memory: a 60%, b 50%",
    ),
    "one of another machine": (two("devices: [0]", "devices: [0]", "gpu1", "gpu1"), "GPU 0 has not that much memory"),
    "a share of what is left": (
        two("devices: [0], gpu_memory_utilization: 0.4", "devices: [0]", kind="trtllm"),
        "GPU 0 is shared (a 40%, b 90%), and b takes a share of whatever is free",
    ),
    "models of one Triton": (
        "engines: {e: {kind: triton, urls: [http://h:9000], launch: {repository: ./r, models: {m: {backend: vllm, model: x, gpu_memory_utilization: 0.5}, n: {backend: vllm, model: y, gpu_memory_utilization: 0.6}}}}}\nmodels: {m: {engine: e}, n: {engine: e}}",
        "any GPU of e has not that much memory: e (m) 50%, e (n) 60%",
    ),
}


@pytest.mark.parametrize("name", CROWDED)
def test_engines_on_one_gpu_that_claim_more_than_it_has_are_told(name: str, read: Callable[..., Loaded]) -> None:
    text, message = CROWDED[name]

    (warned,) = [problem for problem in read(text).warnings if problem.rule == "gpu-memory"]
    assert message in str(warned)


GOOD = {
    "the least": case(VLLM),
    "tools that the gateway reads": case(VLLM, model="tools: {format: hermes}"),
    "tools of a model whose name says its format": case(
        VLLM, "served_names: [Qwen/Qwen3-8B, org/m]", "tools: {parse: auto}"
    ).replace("model: org/m, tools", "model: Qwen/Qwen3-8B, tools"),
    "tools that the engine reads": case(VLLM, "tool_parser: hermes", "tools: {format: hermes, parse: engine}"),
    "one format under two names": case(VLLM, "tool_parser: qwen3_xml", "tools: {format: qwen3_coder}"),
    "a parser by hand": case(
        VLLM, "extra_args: [--enable-auto-tool-choice, --tool-call-parser, hermes]", engine="parser: hermes"
    ),
    "a parser of a plug-in": case(VLLM, "tool_parser: mine, extra_args: [--tool-parser-plugin, /p.py]"),
    "embeddings": case(VLLM, "runner: pooling, convert: embed", "task: embedding"),
    "embeddings of Triton": case(
        TRITON, "models: {m: {backend: vllm, model: BAAI/bge-m3}}", "task: embedding", "embeddings: true"
    ),
    "a context that fits": case(VLLM, "max_model_len: 32K", "context: 32768"),
    "a context as large as fits": case(VLLM, "max_model_len: auto", "context: 32768"),
    "an adapter": case(VLLM, "loras: {sql: /l}").replace("model: org/m, }", "model: sql}"),
    "an adapter of Triton": case(
        TRITON, "lora_separator: _l_, models: {b: {backend: vllm, model: x, loras: {sql: /l}}}", "model: b_l_sql"
    ),
    "a key that the gateway has": case(VLLM, "api_key_file: /run/secrets/k", engine="api_key: k"),
    "a header that the gateway sends": case(
        TRITON,
        "restricted: [{apis: [inference], header: X-K, value_file: /k}]",
        engine="api_key: k, api_key_header: x-k",
    ),
    "connections kept as long as the launch says": case(VLLM, "keep_alive: 75", engine="keep_alive: 60s"),
    "as many requests as are computed at once": case(
        VLLM, "max_num_seqs: 128, data_parallel_size: 2", engine="max_in_flight: 256"
    ),
    "two on one GPU": two("devices: [0], gpu_memory_utilization: 0.5", "devices: [0], gpu_memory_utilization: 0.4"),
    "two on GPUs of their own": two("devices: [0]", "devices: [1]"),
    "two on machines of their own": two("devices: [0]", "devices: [0]", "gpu1", "gpu2"),
    "two that nobody has given GPUs": two("", ""),
    "a cache of known size": two(
        "devices: [0], kv_cache_memory_bytes: 8GiB", "devices: [0], gpu_memory_utilization: 0.5"
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_launch_that_is_right_is_not_warned_of(name: str, read: Callable[..., Loaded]) -> None:
    assert [str(problem) for problem in read(GOOD[name]).warnings] == []


@pytest.mark.parametrize(
    "words",
    [
        "[--api-key, sk-marked, sk-marked-2, --seed, 7]",
        "[--api_key=sk-marked, --seed, 7]",
        "['--hf-token sk-marked', --seed, 7]",
        "[--openai-restricted-api, inference, infer-key, sk-marked, --seed, 7]",
    ],
)
def test_a_secret_among_further_arguments_is_not_shown_with_a_warning(words: str, read: Callable[..., Loaded]) -> None:
    loaded = read(case(VLLM, f"extra_args: {words}"))

    shown = "\n".join((*loaded.lines, *map(str, loaded.warnings)))
    assert "marked" not in shown
    assert "--seed, 7]" in shown


def test_a_warning_points_at_the_line_of_the_launch(read: Callable[..., Loaded]) -> None:
    text = """\
    engines:
      e:
        kind: vllm
        urls: [http://127.0.0.1:8000]
        launch:
          model: org/m
          devices: [0]
          device: cpu
    models: {m: {engine: e, model: org/m}}
    """
    (warned,) = read(text).warnings

    assert (warned.line, warned.column, warned.key) == (7, 16, "engines.e.launch.devices")
