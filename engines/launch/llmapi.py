"""The fixed parts of a model of TensorRT-LLM's LLM-API backend: its tensors, and how its program is reached.

Names and types of the tensors: `triton_backend/all_models/llmapi` of TensorRT-LLM, 1.2; never run here.
"""

from typing import Final

PROGRAM: Final = "/app/all_models/llmapi/tensorrt_llm/1"
"""Where NVIDIA's image of Triton with TensorRT-LLM has `model.py` and `helpers.py` of this backend."""

_INPUTS: Final = """
text_input STRING -1
streaming BOOL 1 optional
stop BOOL 1 optional
sampling_param_max_tokens INT32 1 optional
sampling_param_temperature FP32 1 optional
sampling_param_top_k INT32 1 optional
sampling_param_top_p FP32 1 optional
sampling_param_frequency_penalty FP32 1 optional
sampling_param_presence_penalty FP32 1 optional
sampling_param_stop STRING -1 optional
sampling_param_seed UINT64 1 optional
sampling_param_best_of INT32 1 optional
sampling_param_exclude_input_from_output BOOL 1 optional
sampling_param_return_perf_metrics BOOL 1 optional
return_finish_reason BOOL 1 optional
return_stop_reason BOOL 1 optional
return_cumulative_logprob BOOL 1 optional
"""
_OUTPUTS: Final = """
text_output STRING -1
finish_reason STRING -1
stop_reason STRING -1
cumulative_logprob FP32 -1
kv_cache_reused_block INT32 -1
kv_cache_missed_block INT32 -1
kv_cache_alloc_new_blocks INT32 -1
kv_cache_alloc_total_blocks INT32 -1
kv_cache_hit_rate FP32 -1
arrival_time_ns INT64 1
first_scheduled_time_ns INT64 1
first_token_time_ns INT64 1
last_token_time_ns INT64 1
acceptance_rate FP32 1
total_accepted_draft_tokens INT32 1
total_draft_tokens INT32 1
"""


def _tensors(field: str, table: str) -> str:
    lines = []
    for row in table.strip().splitlines():
        name, kind, size, *optional = row.split()
        also = " optional: true" if optional else ""
        lines.append(f'  {{ name: "{name}" data_type: TYPE_{kind} dims: [ {size} ]{also} }}')
    return f"{field} [\n" + ",\n".join(lines) + "\n]\n"


CONFIG: Final = f"""\
# A model that TensorRT-LLM runs through its LLM API: a Hugging Face checkpoint, no built engine. max_batch_size and the
# decoupled mode must not stand here: the program takes them from model.yaml, where the engine's settings are too.
backend: "python"
# The engine chooses its GPUs itself.
instance_group [ {{ count: 1 kind: KIND_CPU }} ]

{_tensors("input", _INPUTS)}
{_tensors("output", _OUTPUTS)}"""

SHIM: Final = f'''\
"""The model's program stays where TensorRT-LLM's release has it, and so fits the release that runs it.

TRTLLM_LLMAPI_PROGRAM names another folder with its model.py and helpers.py.
"""

import os
import sys

sys.path.insert(0, os.environ.get("TRTLLM_LLMAPI_PROGRAM", "{PROGRAM}"))

from model import TritonPythonModel  # noqa: E402, F401 - it is there only in the server
'''
