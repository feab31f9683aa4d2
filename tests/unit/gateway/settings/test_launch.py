"""Launch settings in the configuration file: whose keys they are, and what is said of wrong ones."""

from collections.abc import Callable

import pytest
from jsonschema import Draft7Validator
from ruamel.yaml import YAML

from engines.launch.kinds import LAUNCHES, AnyLaunch
from engines.launch.triton import TritonLaunch, TrtllmModel, VllmModel
from engines.launch.trtllm import TrtllmLaunch
from engines.launch.vllm import VllmLaunch
from gateway.settings import Loaded
from gateway.settings.json_schema import json_schema
from gateway.settings.redacted import redacted_tree, settings_of

FILE = """\
engines:
  q:
    kind: {kind}
    urls: [http://127.0.0.1:8000]
    launch: {launch}
models: {{m: {{engine: q}}}}
"""
VLLM = "{model: Qwen/Qwen3-8B, max_model_len: 8K, devices: [0, GPU-1a2b3c], loras: {sql: /l}, enforce_eager: yes}"
TRTLLM = "{model: Qwen/Qwen3-8B, max_seq_len: 32k, guided_decoding_backend: xgrammar, settings: {a: {b: 1}}}"
TRITON = (
    "{repository: ./models, tokenizer: Qwen/Qwen3-8B, models: {"
    "a: {backend: vllm, model: x/y, gpu_memory_utilization: '0.5'}, b: {backend: tensorrtllm, model: x/z}}}"
)
GOOD = {"vllm": VLLM, "trtllm": TRTLLM, "triton": TRITON}


def launch(loaded: Loaded) -> AnyLaunch:
    found = loaded.settings.engines["q"].launch
    assert found is not None
    return found


def text(kind: str, settings: str) -> str:
    return FILE.format(kind=kind, launch=settings)


def test_the_keys_are_those_of_the_engines_kind(read: Callable[..., Loaded]) -> None:
    vllm, trtllm, triton = (launch(read(text(kind, GOOD[kind]))) for kind in ("vllm", "trtllm", "triton"))

    assert isinstance(vllm, VllmLaunch)
    assert (vllm.max_model_len, vllm.devices, vllm.enforce_eager) == (8192, ("0", "GPU-1a2b3c"), True)
    assert isinstance(trtllm, TrtllmLaunch)
    assert (trtllm.max_seq_len, trtllm.settings) == (32000, {"a": {"b": 1}})
    assert isinstance(triton, TritonLaunch)
    assert {name: type(model) for name, model in triton.models.items()} == {"a": VllmModel, "b": TrtllmModel}


@pytest.mark.parametrize("kind", GOOD)
def test_an_editor_accepts_them_for_that_kind_only(kind: str) -> None:
    validator = Draft7Validator(json_schema())

    def accepted(settings: str) -> bool:
        return validator.is_valid(YAML(typ="safe", pure=True).load(text(kind, settings)))

    assert {other: accepted(settings) for other, settings in GOOD.items()} == {other: other == kind for other in GOOD}


@pytest.mark.parametrize(
    ("kind", "settings", "told"),
    [
        ("vllm", "{model: m, max_seq_len: 8}", 'launch.max_seq_len: unknown key (did you mean "max_model_len"?)'),
        ("trtllm", "{model: m, max_model_len: 8}", "launch.max_model_len: unknown key"),
        ("vllm", "{}", "launch.model: is required (for example model: Qwen/Qwen3-8B)"),
        ("vllm", "{model: m, gpu_memory_utilization: 90}", "expected a number above 0 and up to 1, such as 0.9"),
        ("vllm", "{model: m, max_model_len: 8 tokens}", "expected a whole number such as 8192, 8k (8000) or 8K (8192)"),
        ("vllm", "{model: m, devices: [gpu0]}", "expected the number of a GPU, or its UUID (GPU-…)"),
        ("vllm", "{model: m, device: tpu}", "expected one of gpu, cpu"),
        ("vllm", "{model: m, environment: {A-B: 1}}", "expected the name of an environment variable"),
        ("vllm", "{model: m, container: {volumes: [./a]}}", "expected SOURCE:/TARGET or SOURCE:/TARGET:ro"),
        ("triton", "{repository: r, tool_parser: hermes}", "expected one of llama3, mistral"),
        ("triton", "{repository: r, models: {a: {model: x}}}", "a model with a backend, vllm or tensorrtllm"),
        ("triton", "{repository: r, models: {a: {backend: vllm, model: x, max_len: 8}}}", "models.a.max_len: unknown"),
        ("nothing", "{model: m}", "engines.q.kind: expected one of vllm, trtllm, triton"),
    ],
)
def test_a_mistake_is_told_with_what_would_be_right(
    kind: str, settings: str, told: str, wrong: Callable[..., list[str]]
) -> None:
    (found,) = wrong(text(kind, settings))

    assert told in found


@pytest.mark.parametrize(
    ("written", "tokens"),
    [("8192", 8192), ("8k", 8000), ("8K", 8192), ("'8K'", 8192), ("1.5k", 1500), ("auto", -1), ("-1", -1)],
)
def test_counts_mean_what_they_mean_on_vllms_command_line(
    written: str, tokens: int, read: Callable[..., Loaded]
) -> None:
    found = launch(read(text("vllm", f"{{model: m, max_model_len: {written}}}")))

    assert isinstance(found, VllmLaunch)
    assert found.max_model_len == tokens


@pytest.mark.parametrize(
    ("written", "size"), [("4G", 4 * 2**30), ("4GiB", 4 * 2**30), ("4GB", 4 * 10**9), ("4g", 4 * 10**9), ("512", 512)]
)
def test_sizes_are_binary_unless_they_say_otherwise(written: str, size: int, read: Callable[..., Loaded]) -> None:
    found = launch(read(text("vllm", f"{{model: m, kv_cache_memory_bytes: {written}}}")))

    assert isinstance(found, VllmLaunch)
    assert found.kv_cache_memory_bytes == size


def test_a_variable_of_the_environment_sets_one_of_them(read: Callable[..., Loaded]) -> None:
    found = launch(read(text("vllm", VLLM), {"TURNOUT_ENGINES__Q__LAUNCH__MAX_MODEL_LEN": "4K"}))

    assert isinstance(found, VllmLaunch)
    assert found.max_model_len == 4096


def test_secrets_among_the_variables_are_not_shown(read: Callable[..., Loaded]) -> None:
    settings = read(text("vllm", "{model: m, environment: {HF_TOKEN: hf_marked, NCCL_DEBUG: WARN}}")).settings
    tree = redacted_tree(settings)

    assert "marked" not in str(tree)
    assert "WARN" in str(tree)
    shown = settings_of(tree).engines["q"].launch
    assert shown is not None
    assert set(shown.environment) == {"HF_TOKEN", "NCCL_DEBUG"}


@pytest.mark.parametrize("kind", LAUNCHES)
def test_every_key_says_what_it_is(kind: str) -> None:
    sections = {str(one): section for one, section in LAUNCHES.items()}

    assert [
        name for name, field in sections[kind].model_fields.items() if not field.description and name != "container"
    ] == []
