"""Load is read from the metrics text of each engine kind."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.profile import EngineKind
from engines.prometheus import EngineLoad, Series, read_load, samples

VLLM_PYTHON = b"""# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="tiny-chat"} 3.0
vllm:num_requests_running{engine="1",model_name="tiny-chat"} 2.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="tiny-chat"} 1.0
# TYPE vllm:num_requests_waiting_by_reason gauge
vllm:num_requests_waiting_by_reason{engine="0",model_name="tiny-chat",reason="capacity"} 7.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="tiny-chat"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="tiny-chat"} 7.5e-01
"""
TRITON_OWN = b"""nv_inference_request_success{model="a",version="1"} 7
nv_inference_pending_request_count{model="a",version="1"} 2
nv_inference_pending_request_count{model="b",version="1"} 3
"""
TRITON_TRTLLM = b"""nv_inference_pending_request_count{model="tensorrt_llm",version="1"} 9
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="waiting",version="1"} 3
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="context",version="1"} 1
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="scheduled",version="1"} 4
nv_trt_llm_request_metrics{model="tensorrt_llm",request_type="max",version="1"} 512
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="tensorrt_llm",version="1"} 0.6
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used",model="tensorrt_llm",version="1"} 100
"""
TRTLLM = b"""trtllm_num_requests_running{model_name="m",engine_type="trtllm"} 2
trtllm_num_requests_waiting{model_name="m",engine_type="trtllm"} 1
trtllm_kv_cache_utilization{model_name="m",engine_type="trtllm"} 0.62
"""


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (EngineKind.VLLM, VLLM_PYTHON, EngineLoad(5.0, 1.0, 0.75)),
        (EngineKind.VLLM, b'vllm:num_requests_running{model_name="m",engine="0"} 4', EngineLoad(4.0, None, None)),
        (EngineKind.VLLM, b"", EngineLoad()),
        (EngineKind.TRTLLM, TRTLLM, EngineLoad(2.0, 1.0, 0.62)),
        (EngineKind.TRTLLM, b'[{"numActiveRequests": 3}]', EngineLoad()),
        (EngineKind.TRITON, TRITON_OWN, EngineLoad(None, 5.0, None)),
        (EngineKind.TRITON, TRITON_TRTLLM, EngineLoad(4.0, 3.0, 0.6)),
        (EngineKind.TRITON, TRITON_OWN + VLLM_PYTHON, EngineLoad(5.0, 1.0, 0.75)),
    ],
)
def test_load(kind: EngineKind, text: bytes, expected: EngineLoad) -> None:
    """Requests are summed over models and ranks, the fullest cache counts, and what is not said is None."""
    assert read_load(kind, text) == expected


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (b"m 1\n", [1.0]),
        (b"m{} 1\r\n", [1.0]),
        (b'm{a="}  {"} 2 1796089845000\n', [2.0]),
        (b'm{a="x\\"} 9"} 3\n', [3.0]),
        (b"m 1e3\nm .5\nm -2\n", [1000.0, 0.5, -2.0]),
        (b"m NaN\nm +Inf\nm -Inf\nm x\nm\nm{ 1\n", []),
        (b"# TYPE m gauge\n# m 4\nmm 5\nm_total 6\nxm 7\n", []),
        (b"m 1.2.3\nm 1--2\nm 8", [8.0]),
    ],
)
def test_samples(text: bytes, values: list[float]) -> None:
    """Labels may hold anything, a timestamp may follow; comments, other names and non-numbers do not count."""
    assert list(samples(text, Series(b"m"))) == values


@given(st.sampled_from(EngineKind), st.binary(max_size=100))
def test_any_text_gives_a_load(kind: EngineKind, junk: bytes) -> None:
    """Junk around and inside the lines never fails."""
    text = VLLM_PYTHON + b"vllm:num_requests_running" + junk + b"\nnv_trt_llm_request_metrics" + junk
    assert isinstance(read_load(kind, text), EngineLoad)
