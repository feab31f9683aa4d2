"""The flags of Triton's OpenAI frontend, `openai_frontend/main.py` (recorded from 2.73)."""

from typing import Final

from engines.launch.flags.table import FlagTable

FLAGS: Final = FlagTable(
    "openai_frontend/main.py",
    "2.73",
    """
--model-repository: text
--tokenizer: text
--backend: text vllm tensorrtllm
--lora-separator: text
--tool-call-parser: text llama3 mistral
--max-tool-call-parse-bytes: int
--chat-template: text
--default-max-tokens: int
--model-control-mode: text none explicit
--load-model: text
--host: text
--openai-port: int
--uvicorn-log-level: text debug info warning error critical trace
--openai-restricted-api: text3
--http-max-input-size: int
--enable-kserve-frontends: switch
--kserve-http-port: int
--kserve-grpc-port: int
--tritonserver-log-verbose-level: int
--help -h: switch
""",
    shorten=True,
)

TOOL_PARSERS: Final = ("llama3", "mistral")
RESTRICTED_APIS: Final = ("inference", "model-repository", "metrics", "health")
