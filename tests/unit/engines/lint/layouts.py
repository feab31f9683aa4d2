"""Model repositories: those that were tried on a real server (tritonserver 2.51), and more faults planted by hand."""

from dataclasses import dataclass
from typing import Final

VLLM: Final = 'backend: "vllm"\n'
KIND: Final = "instance_group [ { count: 1 kind: KIND_MODEL } ]\n"
PYTHON: Final = """\
backend: "python"
instance_group [ { count: 1 kind: KIND_CPU } ]
max_batch_size: 4
input [ { name: "text_input" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "text_output" data_type: TYPE_STRING dims: [ 1 ] } ]
"""
PROGRAM: Final = "class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
MODEL: Final = '{"model": "fake/m"}'
LLMAPI: Final = 'backend: "python"\ninstance_group [ { count: 1 kind: KIND_CPU } ]\n'
SETTINGS: Final = "model: fake/m\ntriton_config: {max_batch_size: 0, decoupled: false}\n"


@dataclass(frozen=True, slots=True)
class Layout:
    """A model's files. `rule` is what must be found, at `place` (`file:line`); empty where nothing is wrong."""

    name: str
    files: dict[str, str]
    rule: str = ""
    place: str = ""
    loads: bool = False
    """Whether the real server loaded it; what is found then is a warning."""

    @property
    def content(self) -> dict[str, bytes]:
        return {f"{self.name}/{path}": text.encode() for path, text in self.files.items()}


def _vllm(config: str, arguments: str = MODEL, version: str = "1") -> dict[str, str]:
    return {"config.pbtxt": config, f"{version}/model.json": arguments}


def _python(config: str, program: str = PROGRAM) -> dict[str, str]:
    return {"config.pbtxt": config, "1/model.py": program}


def _llmapi(config: str = LLMAPI, settings: str = SETTINGS, program: str = PROGRAM) -> dict[str, str]:
    return {"config.pbtxt": config, "1/model.py": program, "1/model.yaml": settings}


BOTH: Final = VLLM + KIND
RECORDED: Final = (
    Layout("ok_minimal", _vllm(BOTH), loads=True),
    Layout("ok_no_instance_group", _vllm(VLLM), loads=True),
    Layout("ok_kind_cpu", _vllm(VLLM + KIND.replace("MODEL", "CPU")), loads=True),
    Layout("py_dyn_ok", _python(PYTHON + "dynamic_batching { preferred_batch_size: [2, 4] }\n"), loads=True),
    Layout("py_dyn_bare", _python(PYTHON + "dynamic_batching { }\n"), loads=True),
    Layout("count_2", _vllm(VLLM + KIND.replace("1", "2")), "instance-count", "config.pbtxt:2", loads=True),
    Layout("version_0", _vllm(BOTH, version="0"), "version-zero", "0", loads=True),
    Layout(
        "two_versions",
        {**_vllm(BOTH), "2/model.json": MODEL},
        "version-not-served",
        "",
        loads=True,
    ),
    Layout("bad_json", _vllm(BOTH, '{"model": "x",}'), "json-syntax", "1/model.json:1"),
    Layout("bad_key", _vllm(BOTH, '{"model":"x","bogus_key":1}'), "unknown-argument", "1/model.json:1"),
    Layout("bad_kind", _vllm(VLLM + KIND.replace("MODEL", "MODELS")), "config-syntax", "config.pbtxt:2"),
    Layout(
        "decoupled_false",
        _vllm(VLLM + "model_transaction_policy { decoupled: false }\n" + KIND),
        "decoupled",
        "config.pbtxt:2",
    ),
    Layout(
        "dynamic_batching",
        _vllm(VLLM + "dynamic_batching { preferred_batch_size: [4, 8] max_queue_delay_microseconds: 100 }\n" + KIND),
        "preferred-batch-size",
        "config.pbtxt:2",
    ),
    Layout("empty_version", {"config.pbtxt": BOTH, "1/": ""}, "no-model-json", "1"),
    Layout("kind_gpu", _vllm(VLLM + KIND.replace("MODEL", "GPU")), "kind-gpu", "config.pbtxt:2"),
    Layout("lora_no_file", _vllm(BOTH, '{"model":"x",\n"enable_lora":true}'), "no-multi-lora", "1/model.json:2"),
    Layout(
        "max_batch_8_dyn",
        _vllm(VLLM + "max_batch_size: 8\ndynamic_batching { preferred_batch_size: [4, 16] }\n" + KIND),
        "preferred-batch-size",
        "config.pbtxt:3",
    ),
    Layout("name with space", _vllm(BOTH), "model-name", ""),
    Layout("name_mismatch", _vllm('name: "other"\n' + BOTH), "name-mismatch", "config.pbtxt:1"),
    Layout("no_backend", _vllm(KIND), "no-backend", "config.pbtxt:1"),
    Layout("no_config", {"1/model.json": MODEL}, "no-config", ""),
    Layout("no_model_json", {"config.pbtxt": BOTH, "1/": ""}, "no-model-json", "1"),
    Layout("no_version", {"config.pbtxt": BOTH}, "no-version", ""),
    Layout(
        "py_dyn_max_batch_0",
        _python(PYTHON.replace(": 4", ": 0") + "dynamic_batching { preferred_batch_size: [4] }\n"),
        "preferred-batch-size",
        "config.pbtxt:6",
    ),
    Layout(
        "py_dyn_negative_delay",
        _python(PYTHON + "dynamic_batching { max_queue_delay_microseconds: -1 }\n"),
        "config-syntax",
        "config.pbtxt:6",
    ),
    Layout(
        "py_dyn_pref_gt_max",
        _python(PYTHON + "dynamic_batching { preferred_batch_size: [8] }\n"),
        "preferred-batch-size",
        "config.pbtxt:6",
    ),
    Layout("py_no_model_py", {"config.pbtxt": LLMAPI, "1/model.json": MODEL}, "no-model-py", "1"),
    Layout("py_syntax_in_model", _python(PYTHON, "class Triton(:\n"), "python-syntax", "1/model.py:1"),
    Layout(
        "syntax_error",
        _vllm(VLLM + "instance_group [ { count: 1 kind: KIND_MODEL }\n"),
        "config-syntax",
        "config.pbtxt:2",
    ),
    Layout("tensorrtllm_backend", _vllm('backend: "tensorrtllm"\n'), "legacy-backend", "config.pbtxt:1"),
    Layout(
        "tp2_kind_gpu",
        _vllm(VLLM + KIND.replace("MODEL", "GPU"), '{"model":"x","tensor_parallel_size":2}'),
        "kind-model",
        "config.pbtxt:2",
    ),
    Layout("unknown_backend", _vllm('backend: "vlm"\n'), "unknown-backend", "config.pbtxt:1"),
    Layout("unknown_field", _vllm(VLLM + "gpu_memory: 1\n"), "config-syntax", "config.pbtxt:2"),
    Layout("version_01", _vllm(BOTH, version="01"), "version-folder", "01"),
    Layout(
        "version_policy_missing",
        _vllm(VLLM + "version_policy: { specific: { versions: [3] } }\n" + KIND),
        "version-policy",
        "config.pbtxt:2",
    ),
    Layout("version_v1", _vllm(BOTH, version="v1"), "version-folder", "v1"),
)
PLANTED: Final = (
    Layout(
        "two_kinds", _vllm(BOTH, '{\n"model": "x",\n"gpu_memory_utilization": 1.2}'), "out-of-range", "1/model.json:3"
    ),
    Layout("sample", _vllm(BOTH, '{"model": "x",\n"gpu_memory_utilization": 0.1}'), "sample-value", "1/model.json:2"),
    Layout("half", _vllm(BOTH, '{"model": "x", "gpu_memory_utilization": 0.5}'), "sample-value", "1/model.json:1"),
    Layout(
        "old_key", _vllm(BOTH, '{"model": "x",\n"disable_log_requests": true}'), "unknown-argument", "1/model.json:2"
    ),
    Layout(
        "server_key", _vllm(BOTH, '{"model": "x",\n"tool_call_parser": "hermes"}'), "unknown-argument", "1/model.json:2"
    ),
    Layout("quoted", _vllm(BOTH, '{"model": "x", "max_num_seqs": "many"}'), "argument-value", "1/model.json:1"),
    Layout("dtype", _vllm(BOTH, '{"model": "x", "dtype": "int4"}'), "argument-value", "1/model.json:1"),
    Layout("nameless", _vllm(BOTH, "{}"), "no-model", "1/model.json:1"),
    Layout("a_list", _vllm(BOTH, "[]"), "json-syntax", "1/model.json:1"),
    Layout("loras", {**_vllm(BOTH), "1/multi_lora.json": '{"a": "/a"}'}, "multi-lora-unread", "1/multi_lora.json:1"),
    Layout(
        "bad_loras",
        {**_vllm(BOTH, '{"model": "x", "enable_lora": "true"}'), "1/multi_lora.json": '["/a"]'},
        "json-syntax",
        "1/multi_lora.json:1",
    ),
    Layout("tp2_no_group", _vllm(VLLM, '{"model":"x","tensor_parallel_size":2}'), "kind-model", "config.pbtxt:1"),
    Layout("bare_dynamic", _vllm(BOTH + "dynamic_batching { }\n"), "dynamic-batching-useless", "config.pbtxt:3"),
    Layout("batch_8", _vllm(BOTH + "max_batch_size: 8\n"), "max-batch-size-useless", "config.pbtxt:3"),
    Layout(
        "gpus", _vllm(VLLM + "instance_group [\n{ kind: KIND_MODEL\ngpus: [1] } ]"), "instance-gpus", "config.pbtxt:4"
    ),
    Layout("twice", _vllm(VLLM + BOTH), "config-syntax", "config.pbtxt:2"),
    Layout("template", _python(PYTHON.replace(": 4", ": ${max}")), "config-syntax", "config.pbtxt:3"),
    Layout(
        "levels",
        _python(PYTHON + "dynamic_batching {\npriority_levels: 2\ndefault_priority_level: 3 }"),
        "priority-level",
        "config.pbtxt:8",
    ),
    Layout(
        "policies",
        _python(
            PYTHON + "dynamic_batching { priority_levels: 1 default_priority_level: 1\n"
            "priority_queue_policy { key: 2 value { max_queue_size: 1 } } }"
        ),
        "priority-level",
        "config.pbtxt:7",
    ),
    Layout("no_class", _python(PYTHON, "class Model:\n    pass\n"), "no-model-class", "1/model.py:1"),
    Layout("no_helpers", _llmapi(program="from helpers import x\n" + PROGRAM), "no-helpers", "1/model.py:1"),
    Layout("no_triton", _llmapi(settings="model: fake/m\n"), "no-triton-config", "1/model.yaml:1"),
    Layout(
        "half_triton",
        _llmapi(settings="model: m\ntriton_config: {max_batch_size: 0}"),
        "no-triton-config",
        "1/model.yaml:2",
    ),
    Layout(
        "batches", _llmapi(settings=SETTINGS.replace("size: 0", "size: 8")), "max-batch-size-useless", "1/model.yaml:2"
    ),
    Layout(
        "decoupled", _llmapi(LLMAPI + "model_transaction_policy { decoupled: true }"), "llmapi-config", "config.pbtxt:3"
    ),
    Layout("batch_here", _llmapi(LLMAPI + "max_batch_size: 4"), "llmapi-config", "config.pbtxt:3"),
    Layout("gpu_kind", _llmapi(LLMAPI.replace("CPU", "GPU")), "kind-cpu", "config.pbtxt:2"),
    Layout("two_instances", _llmapi(LLMAPI.replace("1", "2")), "gpu-device-ids", "config.pbtxt:2"),
    Layout(
        "engine_model",
        _llmapi(settings=SETTINGS.replace("fake/m", "/engines/llama")),
        "engine-directory",
        "1/model.yaml:1",
    ),
    Layout("old_backend", _llmapi(settings="backend: tensorrt\n" + SETTINGS), "removed-value", "1/model.yaml:1"),
    Layout(
        "fraction",
        _llmapi(settings=SETTINGS + "kv_cache_config:\n  free_gpu_memory_fraction: 9\n"),
        "out-of-range",
        "1/model.yaml:4",
    ),
    Layout("yaml", _llmapi(settings="model: [\n"), "yaml-syntax", "1/model.yaml:2"),
    Layout("built", {**_python(PYTHON), "1/rank0.engine": ""}, "engine-directory", "1"),
)
