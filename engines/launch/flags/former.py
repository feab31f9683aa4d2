"""Flags that programs once had, and what says the same now; data.

vLLM: what its own releases and deprecation notes say; a test holds that none of the old names is in today's table, and
that what is named instead is. A fix without a flag tells what to do.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_SPECULATIVE: Final = '--speculative-config \'{"model": …, "num_speculative_tokens": …}\''
_GUIDED: Final = '--structured-outputs-config \'{"backend": "xgrammar"}\''
_NOTHING: Final = "leave it out"

VLLM: Final[Mapping[str, str]] = MappingProxyType(
    {
        "--task": "--runner generate or --runner pooling, and --convert embed or classify",
        "--disable-log-requests": "leave it out: requests are logged only with --enable-log-requests",
        "--guided-decoding-backend": _GUIDED,
        "--guided-decoding-disable-fallback": _GUIDED,
        "--guided-decoding-disable-any-whitespace": _GUIDED,
        "--guided-decoding-disable-additional-properties": _GUIDED,
        "--enable-reasoning": "--reasoning-parser alone",
        "--reasoning-backend": "--reasoning-parser",
        "--swap-space": "leave it out; --kv-offloading-size keeps KV cache in the machine's memory",
        "--device": "leave it out: the installed build decides",
        "--num-scheduler-steps": _NOTHING,
        "--multi-step-stream-outputs": _NOTHING,
        "--use-v2-block-manager": _NOTHING,
        "--num-lookahead-slots": _NOTHING,
        "--scheduler-delay-factor": _NOTHING,
        "--preemption-mode": _NOTHING,
        "--disable-async-output-proc": "--no-async-scheduling",
        "--disable-frontend-multiprocessing": _NOTHING,
        "--worker-use-ray": "--distributed-executor-backend ray",
        "--engine-use-ray": "--distributed-executor-backend ray",
        "--speculative-model": _SPECULATIVE,
        "--num-speculative-tokens": _SPECULATIVE,
        "--speculative-draft-tensor-parallel-size": _SPECULATIVE,
        "--speculative-max-model-len": _SPECULATIVE,
        "--speculative-disable-by-batch-size": _SPECULATIVE,
        "--ngram-prompt-lookup-max": _SPECULATIVE,
        "--ngram-prompt-lookup-min": _SPECULATIVE,
        "--rope-scaling": "--hf-overrides '{\"rope_parameters\": {…}}'",
        "--rope-theta": "--hf-overrides '{\"rope_parameters\": {…}}'",
        "--max-context-len-to-capture": "--max-cudagraph-capture-size",
        "--max-seq-len-to-capture": "--max-cudagraph-capture-size",
        "--cuda-graph-sizes": "--cudagraph-capture-sizes",
        "--full-cuda-graph": '--compilation-config \'{"cudagraph_mode": "FULL"}\'',
        "--override-pooler-config": "--pooler-config",
        "--tokenizer-pool-size": "--api-server-count, where one process is too slow for the texts",
        "--tokenizer-pool-type": _NOTHING,
        "--enable-prompt-adapter": "--enable-lora: prompt adapters are gone",
        "--max-prompt-adapters": "--max-loras: prompt adapters are gone",
        "--lora-extra-vocab-size": _NOTHING,
        "--long-lora-scaling-factors": _NOTHING,
        "--disable-mm-preprocessor-cache": "--mm-processor-cache-gb 0",
        "--calculate-kv-scales": "leave it out, and use a checkpoint that has the scales",
    }
)

TRTLLM: Final[Mapping[str, str]] = MappingProxyType(
    {
        "--api-key": "leave it out: trtllm-serve knows no keys; let the gateway ask for them, and close the port",
        "--max_input_len": "--max_seq_len, which counts prompt and answer together",
        "--enable_build_cache": "leave it out: nothing is built any more",
        "--engine_dir": "the checkpoint's folder or name as MODEL: engines are not loaded any more",
    }
)

_SERVER: Final = """
allow_credentials allowed_headers allowed_methods allowed_origins anthropic_disabled_thinking_effort api_key
api_server_count chat_template chat_template_content_format cohere_format cohere_is_reasoning_model config
data_parallel_supervisor_port default_chat_template_kwargs disable_access_log_for_endpoints disable_fastapi_docs
disable_uvicorn_access_log dp_supervisor_probe_failure_threshold dp_supervisor_probe_interval_s
dp_supervisor_probe_timeout_s enable_auto_tool_choice enable_flash_late_interaction enable_force_include_usage
enable_log_deltas enable_log_outputs enable_offline_docs enable_per_request_metrics enable_prompt_tokens_details
enable_request_id_headers enable_scale_out enable_server_load_tracking enable_ssl_refresh
enable_tokenizer_info_endpoint exclude_tools_when_tool_choice_none fingerprint_mode fingerprint_value grpc grpc_port
h11_max_header_count h11_max_incomplete_event_size headless help host log_error_stack lora_modules max_log_len
middleware port response_role return_tokens_as_token_ids root_path sse_keep_alive_interval ssl_ca_certs
ssl_cert_reqs ssl_certfile ssl_ciphers ssl_keyfile tool_call_parser tool_parser_plugin tool_server
tool_strict_level trust_request_chat_template trust_request_mm_kwargs uds uvicorn_log_level
"""
NOT_ENGINE_ARGUMENTS: Final[frozenset[str]] = frozenset(_SERVER.split())
"""Flags of `vllm serve` that belong to its HTTP server: the engine (AsyncEngineArgs of 0.32) does not know them."""

ENGINE_ONLY_ARGUMENTS: Final[frozenset[str]] = frozenset({"enable_mm_processor_stats", "mamba_config", "model_weights"})
"""Arguments of that engine without a flag."""
