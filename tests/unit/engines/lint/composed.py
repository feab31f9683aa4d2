"""Compose files: good ones, and faults planted in them."""

from dataclasses import dataclass
from typing import Final

GOOD: Final = """\
services:
  chat:
    image: vllm/vllm-openai:v0.32.0
    command: [Qwen/Qwen3-8B, --port, "8000", --gpu-memory-utilization, "0.9"]
    ports: ["8000:8000"]
    ipc: host
    healthcheck: {test: [CMD, curl, -f, "http://localhost:8000/health"]}
    deploy: {resources: {reservations: {devices: [{driver: nvidia, device_ids: ["0"], capabilities: [gpu]}]}}}
  coder:
    image: nvcr.io/nvidia/tensorrt-llm/release:1.2.1
    command: trtllm-serve Qwen/Qwen3-4B --host 0.0.0.0
    ports: ["127.0.0.1:8001:8000"]
    shm_size: 8gb
    ulimits: {memlock: -1, stack: 67108864}
    healthcheck: {test: "curl -f http://localhost:8000/health || exit 1"}
    deploy: {resources: {reservations: {devices: [{driver: nvidia, device_ids: ["1"], capabilities: [gpu]}]}}}
  triton:
    image: nvcr.io/nvidia/tritonserver:26.09-vllm-python-py3
    entrypoint: [/bin/sh, -c]
    command:
      - |
        exec python3 /opt/tritonserver/python/openai/openai_frontend/main.py \\
          --model-repository /models --tokenizer Qwen/Qwen3-8B
    ports: [{target: 9000, published: "9000"}]
    ipc: host
    ulimits: {memlock: -1, stack: 67108864}
    healthcheck: {test: [CMD, curl, -f, "http://localhost:9000/health/ready"]}
    gpus: [{device_ids: ["${TRITON_GPU:-2}"]}]
  database:
    image: redis:8-alpine
    command: [redis-server, --save, ""]
"""


@dataclass(frozen=True, slots=True)
class Spoiled:
    """`right` in the good file is replaced by `wrong`; `rule` finds it at `line`."""

    rule: str
    line: int
    right: str
    wrong: str

    @property
    def text(self) -> str:
        assert self.right in GOOD
        return GOOD.replace(self.right, self.wrong, 1)


PLANTED: Final = (
    Spoiled("unknown-flag", 4, "--gpu-memory-utilization", "--gpu-memory-utilisation"),
    Spoiled("out-of-range", 4, '"0.9"', '"90"'),
    Spoiled("sample-value", 4, '"0.9"', '"0.1"'),
    Spoiled("port-not-served", 5, '"8000:8000"', '"8000:80"'),
    Spoiled("port-taken", 12, "127.0.0.1:8001", "127.0.0.1:8000"),
    Spoiled("shared-memory", 2, "    ipc: host\n", ""),
    Spoiled("shared-memory", 13, "8gb", "64mb"),
    Spoiled("shared-memory", 9, "    shm_size: 8gb\n", ""),
    Spoiled(
        "limits",
        9,
        '    ulimits: {memlock: -1, stack: 67108864}\n    healthcheck: {test: "',
        '    healthcheck: {test: "',
    ),
    Spoiled("health-path", 15, "8000/health ", "8000/health/ready "),
    Spoiled("health-port", 7, "localhost:8000/health", "localhost:8080/health"),
    Spoiled("health-path", 27, "9000/health/ready", "9000/health"),
    Spoiled("loopback-in-container", 11, " --host 0.0.0.0", ""),
    Spoiled("limits", 14, "memlock: -1, ", ""),
    Spoiled("shared-gpu", 11, '["1"]', '["0"]'),
    Spoiled(
        "no-gpus",
        2,
        '    deploy: {resources: {reservations: {devices: [{driver: nvidia, device_ids: ["0"]',
        '    x-was: {a: {b: {c: [{d: ["0"]',
    ),
    Spoiled("too-few-gpus", 4, '"0.9"]', '"0.9", -tp, "2"]'),
    Spoiled("unknown-flag", 23, "--tokenizer ", "--lora-separater _ --tokenizer "),
    Spoiled("removed-program", 11, "trtllm-serve Qwen/Qwen3-4B", "trtllm-build"),
    Spoiled(
        "memory-sum",
        29,
        '  database:\n    image: redis:8-alpine\n    command: [redis-server, --save, ""]\n',
        "  second:\n    image: vllm/vllm-openai:v0.32.0\n    command: --model x\n    ipc: host\n"
        "    gpus: [{count: 1}]\n",
    ),
)
