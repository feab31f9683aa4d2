"""Command lines with one fault each, and the same without it."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Planted:
    """A command line with a fault, the rule that finds it, and the same without the fault."""

    rule: str
    command: str
    mended: str


def mend(rule: str, command: str, wrong: str, right: str) -> Planted:
    """A fault that is mended by putting `right` in the place of `wrong`."""
    assert wrong in command
    return Planted(rule, command, command.replace(wrong, right))


def spoil(rule: str, command: str, right: str, wrong: str) -> Planted:
    """A fault that is planted by putting `wrong` in the place of `right`."""
    assert right in command
    return Planted(rule, command.replace(right, wrong), command)


V: Final = "vllm serve Qwen/Qwen3-8B"
T: Final = "trtllm-serve Qwen/Qwen3-8B"
F: Final = "python3 openai_frontend/main.py --model-repository models --tokenizer Qwen/Qwen3-8B"
DV: Final = "docker run --gpus all --ipc=host -p 8000:8000 vllm/vllm-openai:v0.32.0 --model Qwen/Qwen3-8B"
DT: Final = (
    "docker run --gpus all --ipc host --ulimit memlock=-1 --ulimit stack=67108864 -p 8000:8000 "
    "nvcr.io/nvidia/tensorrt-llm/release:1.2.1 trtllm-serve Qwen/Qwen3-8B --host 0.0.0.0"
)

PLANTED: Final = (
    mend("unknown-flag", f"{V} --max-model-length 8k", "--max-model-length", "--max-model-len"),
    mend("removed-flag", f"{V} --task embed", "--task embed", "--runner pooling"),
    mend("removed-flag", f"{V} --disable-log-requests", "--disable-log-requests", ""),
    mend("removed-flag", f"{V} --guided-decoding-backend xgrammar", "--guided-decoding-backend xgrammar", ""),
    mend("removed-flag", f"{V} --enable_reasoning --reasoning-parser qwen3", "--enable_reasoning ", ""),
    mend("removed-flag", f"{V} --swap-space 4", "--swap-space 4", ""),
    mend("removed-flag", f"{V} --speculative-model x", "--speculative-model x", ""),
    mend("flag-value", f"{V} --max-num-seqs many", "many", "64"),
    mend("flag-value", f"{V} --dtype int4", "int4", "bfloat16"),
    mend("flag-value", f"{V} --max-lora-rank 24 --enable-lora", "24", "32"),
    mend("flag-value", f"{V} --max-num-seqs", "--max-num-seqs", ""),
    mend("flag-value", f"{V} --hf-overrides '{{x: 1}}'", "{x: 1}", '{"x": 1}'),
    mend("out-of-range", f"{V} --gpu-memory-utilization 90", "90", "0.9"),
    mend("out-of-range", f"{V} --gpu-memory-utilization=0", "=0", "=0.9"),
    mend("out-of-range", f"{V} --port 80000", "80000", "8000"),
    mend("out-of-range", f"{V} --max-model-len 0", " 0", " auto"),
    mend("out-of-range", f"{V} -tp 0", "-tp 0", "-tp 2"),
    mend("given-twice", f"{V} --port 8000 --port 8001", "--port 8001", ""),
    mend("given-twice", f"{V} --model Qwen/Qwen3-4B", "--model Qwen/Qwen3-4B", ""),
    mend("stray-argument", f"{V} Qwen/Qwen3-4B", " Qwen/Qwen3-4B", ""),
    mend("stray-argument", "python -m vllm.entrypoints.openai.api_server Qwen/Qwen3-8B", "server ", "server --model "),
    mend("no-model", "vllm serve --port 8000", "serve", "serve Qwen/Qwen3-8B"),
    mend("no-parser", f"{V} --enable-auto-tool-choice", "choice", "choice --tool-call-parser hermes"),
    mend("no-auto-tools", f"{V} --tool-call-parser hermes", "hermes", "hermes --enable-auto-tool-choice"),
    mend("unknown-parser", f"{V} --enable-auto-tool-choice --tool-call-parser hermez", "hermez", "hermes"),
    mend("unknown-parser", f"{V} --reasoning-parser deepseek-r1", "deepseek-r1", "deepseek_r1"),
    mend(
        "pooling-tools",
        f"{V} --runner pooling --enable-auto-tool-choice --tool-call-parser hermes",
        " --enable-auto-tool-choice --tool-call-parser hermes",
        "",
    ),
    mend(
        "contradiction",
        f"{V} --kv-cache-memory-bytes 8G --gpu-memory-utilization 0.9",
        "--gpu-memory-utilization 0.9",
        "",
    ),
    mend("contradiction", f"{V} --max-num-batched-tokens 64 --max-num-seqs 256", "tokens 64", "tokens 4k"),
    mend(
        "contradiction",
        f"{V} --no-enable-chunked-prefill --max-num-batched-tokens 2k --max-model-len 8k",
        "--no-enable-chunked-prefill",
        "",
    ),
    mend("contradiction", f"{V} --enable-lora --max-loras 4 --max-cpu-loras 2", "cpu-loras 2", "cpu-loras 8"),
    mend("no-lora", f"{V} --lora-modules sql=/loras/sql", "--lora-modules", "--enable-lora --lora-modules"),
    mend("no-lora", f"{V} --max-loras 4", "--max-loras", "--enable-lora --max-loras"),
    mend("sample-value", f"{V} --gpu-memory-utilization 0.1", "0.1", "0.9"),
    mend("sample-value", f"{V} --gpu-memory-utilization 0.5", "0.5", "0.9"),
    mend("key-in-sight", f"{V} --api-key sk-1", "--api-key sk-1", ""),
    mend("too-few-gpus", f"CUDA_VISIBLE_DEVICES=0 {V} -tp 2", "DEVICES=0", "DEVICES=0,1"),
    mend("memory-sum", f"{V} --port 1 & {V} --port 2", f"& {V}", f"& CUDA_VISIBLE_DEVICES=1 {V}"),
    mend("engine-directory", "vllm serve /models/llama_engine", "llama_engine", "llama"),
    mend("unknown-flag", f"{T} --max-batch-size 64", "--max-batch-size", "--max_batch_size"),
    mend("unknown-flag", f"{T} --tool_parsers qwen3", "--tool_parsers", "--tool_parser"),
    mend("removed-flag", f"{T} --api-key sk-1", "--api-key sk-1", ""),
    mend("removed-value", f"{T} --backend tensorrt", "--backend tensorrt", ""),
    mend("removed-value", f"{T} --backend trt", " trt", " pytorch"),
    mend("out-of-range", f"{T} --kv_cache_free_gpu_memory_fraction 85", "85", "0.85"),
    mend("unknown-parser", f"{T} --tool_parser llama3", "--tool_parser llama3", ""),
    mend("unknown-parser", f"{T} --tool_parser qwen33", "qwen33", "qwen3"),
    mend("contradiction", f"{T} --grpc --tool_parser qwen3", "--grpc", ""),
    mend("contradiction", f"{T} --tp_size 4 --ep_size 3", "--ep_size 3", "--ep_size 2"),
    mend("no-role", f"{T} --metadata_server_config_file m.yaml", "m.yaml", "m.yaml --server_role CONTEXT"),
    mend("deprecated-flag", f"{T} --cluster_size 2", "--cluster_size 2", ""),
    mend("no-model", "trtllm-serve --port 8000", "serve", "serve Qwen/Qwen3-8B"),
    mend("pooling-tools", "trtllm-serve embeddings x --tool_parser qwen3", "--tool_parser qwen3", ""),
    mend("engine-directory", "trtllm-serve ./engine_outputs", "./engine_outputs", "./checkpoint"),
    mend("too-few-gpus", f"CUDA_VISIBLE_DEVICES=1 {T} --tp_size 2", "=1", "=0,1"),
    mend("removed-program", f"trtllm-build --checkpoint_dir c; {T}", "trtllm-build --checkpoint_dir c; ", ""),
    mend("removed-program", f"trtllm-refit --checkpoint_dir c && {T}", "trtllm-refit --checkpoint_dir c && ", ""),
    mend("removed-program", f"trtllm-prune --checkpoint_dir c\n{T}", "trtllm-prune --checkpoint_dir c\n", ""),
    mend(
        "removed-program",
        f"python3 examples/convert_checkpoint.py\n{T}",
        "python3 examples/convert_checkpoint.py\n",
        "",
    ),
    mend("removed-program", f"python3 tools/fill_template.py -i x\n{T}", "python3 tools/fill_template.py -i x\n", ""),
    mend("no-repository", "python3 openai_frontend/main.py --tokenizer x", "main.py", "main.py --model-repository m"),
    mend("no-tokenizer", "python3 openai_frontend/main.py --model-repository m", "ory m", "ory m --tokenizer x"),
    mend("flag-value", f"{F} --tool-call-parser hermes", "hermes", "llama3"),
    mend("flag-value", f"{F} --openai-restricted-api admin x-key secret", "admin", "inference"),
    mend("contradiction", f"{F} --load-model qwen", "qwen", "qwen --model-control-mode explicit"),
    mend("contradiction", f"{F} --kserve-http-port 8000", "--kserve", "--enable-kserve-frontends --kserve"),
    mend("port-taken", f"{F} --enable-kserve-frontends --openai-port 8000", "port 8000", "port 9000"),
    mend("out-of-range", f"{F} --default-max-tokens 0", "tokens 0", "tokens 512"),
    spoil("shared-memory", DV, "--ipc=host ", ""),
    spoil("shared-memory", f"{DV} -tp 2", "--ipc=host", "--shm-size 64m"),
    spoil("no-gpus", DV, "--gpus all ", ""),
    spoil("too-few-gpus", f"{DV} -tp 2".replace("all", "2"), "--gpus 2", "--gpus device=1"),
    spoil("port-not-served", DV, ":8000 ", ":9000 "),
    spoil("loopback-in-container", f"{DV} --host 0.0.0.0", "0.0.0.0", "127.0.0.1"),
    spoil("loopback-in-container", DT, " --host 0.0.0.0", ""),
    spoil("limits", DT, "--ulimit memlock=-1 ", ""),
)

GOOD: Final = (
    V,
    T,
    F,
    DV,
    DT,
    f"{V} -O3 -cc.mode 3 --hf-overrides.x 1 --kv-cache-memory-bytes 8G",
    f'{V} --speculative-config \'{{"model": "x", "num_speculative_tokens": 3}}\'',
    f"CUDA_VISIBLE_DEVICES=0,1 {V} --tensor_parallel_size=2",
    f"{V} -tp 8 -pp 2 --distributed-executor-backend ray",
    f"{V} --max_model_len=32k --no-enable-prefix-caching --gpu-memory-utilization .95 --seed -1",
    f"{V} --enable-auto-tool-choice --tool-call-parser mine --tool-parser-plugin /mine.py",
    f"{V} --gpu-memory-utilization 0.5 --port 1 & {V} --gpu-memory-utilization 0.5 --port 2",
    f"CUDA_VISIBLE_DEVICES=$A {V} --port 1 & CUDA_VISIBLE_DEVICES=$B {V} --port 2",
    f"for i in 0 1; do CUDA_VISIBLE_DEVICES=$i {V} --port 800$i & done; wait",
    'if [ -n "$MODEL" ]; then\n  exec vllm serve "$MODEL" $MORE\nfi',
    'vllm serve "$@"',
    "trtllm-serve $MODEL --port $PORT --max_batch_size ${BATCH}",
    "trtllm-serve serve x --backend pytorch --extra_llm_api_options x.yaml",
    "trtllm-serve disaggregated -c disaggregated.yaml",
    "mpirun -n 2 trtllm-llmapi-launch trtllm-serve x --tp_size 2",
    "docker run --gpus '\"device=0,1\"' --shm-size 16g -p 80:8000 vllm/vllm-openai:v0.32.0 --model x -tp 2",
    "docker run --net host --gpus all --ipc host vllm/vllm-openai:v0.32.0 --model x --host 127.0.0.1",
    "docker run --rm -p 8000:8000 --shm-size=4g vllm/vllm-openai-cpu:v0.32.0 x --dtype bfloat16",
    "podman run --device nvidia.com/gpu=all --shm-size=8g -p 8000:8000 vllm/vllm-openai:v0.32.0 --model a",
    f"sudo docker run -d --gpus all --ipc host -p 8000:8000 --entrypoint /bin/bash vllm/vllm-openai:v0.32.0 -c '{V}'",
)
