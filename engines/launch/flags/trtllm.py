"""The flags of `trtllm-serve MODEL`, read in its source: 1.2, and the newer ones of 2026.

The usual name comes first; what older and newer releases call the same flag follows.
"""

from typing import Final

from engines.launch.flags import former
from engines.launch.flags.table import FlagTable

FLAGS: Final = FlagTable(
    "trtllm-serve",
    "1.2",
    """
--tokenizer: text
--custom_tokenizer: text
--host: text
--port: int
--backend: text pytorch _autodeploy tensorrt trt
--custom_module_dirs: text
--log_level: text internal_error error warning info verbose debug trace
--max_beam_width: int
--max_batch_size: int
--max_num_tokens: int
--max_seq_len: int
--tensor_parallel_size --tp_size: int
--pipeline_parallel_size --pp_size: int
--context_parallel_size --cp_size: int
--moe_expert_parallel_size --ep_size: int
--moe_cluster_parallel_size --cluster_size: int
--gpus_per_node: int
--kv_cache_free_gpu_memory_fraction --free_gpu_memory_fraction: float
--kv_cache_dtype: text auto fp8 nvfp4
--num_postprocess_workers: int
--trust_remote_code: switch
--revision --hf_revision: text
--config --extra_llm_api_options: text
--reasoning_parser: text
--tool_parser: text
--metadata_server_config_file: text
--server_role: text
--fail_fast_on_attention_window_too_large: switch
--otlp_traces_endpoint: text
--disagg_cluster_uri: text
--enable_chunked_prefill: switch
--enable_attention_dp: switch
--media_io_kwargs: json
--chat_template: text
--served_model_name: text
--grpc: switch
--help: switch
""",
    former=former.TRTLLM,
)

EMBEDDINGS: Final = frozenset(
    {
        "--host",
        "--port",
        "--log_level",
        "--max_batch_size",
        "--max_num_tokens",
        "--gpus_per_node",
        "--trust_remote_code",
    }
)
"""Those that `trtllm-serve embeddings` is started with here: the ones that all its encoder servers share."""

TOOL_PARSERS: Final = (
    "qwen3",
    "qwen3_coder",
    "kimi_k2",
    "deepseek_v3",
    "deepseek_v31",
    "deepseek_v32",
    "glm4",
    "glm47",
    "gemma4",
    "minimax_m2",
    "deepseek_v4",
)
"""From the oldest to the newest; those from glm4 on are of 2026. None is for Llama's, Mistral's or Hermes' format."""

REASONING_PARSERS: Final = (
    "deepseek-r1",
    "qwen3",
    "nano-v3",
    "qwen3_5",
    "minimax_m2",
    "minimax_m2_append_think",
    "deepseek_v4",
    "poolside_v1",
    "laguna",
    "kimi_k25",
)
