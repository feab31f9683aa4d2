"""`turnout engines repository`: a Triton model repository made of launch settings."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from engines.lint.repository import lint_repository
from engines.lint.triton_config import read_config
from gateway.cli import main
from gateway.cli.engines.lint import files_of

FILE = """\
engines:
  triton:
    kind: triton
    urls: [http://127.0.0.1:9000]
    launch:
      repository: ./models
      tokenizer: Qwen/Qwen3-8B
      models:
        qwen:
          backend: vllm
          model: Qwen/Qwen3-8B
          gpu_memory_utilization: 0.8
          max_model_len: 8K
          tensor_parallel_size: 2
          loras: {sql: /loras/sql}
          arguments: {seed: 7}
        llama:
          backend: tensorrtllm
          model: meta-llama/Llama-3.1-8B-Instruct
          kv_cache_free_gpu_memory_fraction: 0.8
          arguments: {cuda_graph_config: {enable_padding: true}}
  vllm: {kind: vllm, urls: [http://127.0.0.1:8000], launch: {model: Qwen/Qwen3-8B}}
models:
  qwen: {engine: triton}
  other: {engine: vllm, model: Qwen/Qwen3-8B}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "turnout.yaml"
    file.write_text(FILE)
    return file


def make(config: Path, *more: str, engine: str = "triton") -> tuple[int, Path]:
    out = config.parent / "repository"
    return main(["engines", "repository", engine, "--config", str(config), "--out", str(out), *more]), out


def test_it_makes_what_the_vllm_backend_reads(config: Path) -> None:
    code, out = make(config)

    assert code == 0
    made = read_config((out / "qwen/config.pbtxt").read_text())
    assert (made.backend, [(group.kind, group.count) for group in made.instance_group]) == ("vllm", [("KIND_MODEL", 1)])
    assert (made.dynamic_batching, made.max_batch_size) == (None, 0)
    assert json.loads((out / "qwen/1/model.json").read_text()) == {
        "model": "Qwen/Qwen3-8B",
        "gpu_memory_utilization": 0.8,
        "max_model_len": 8192,
        "tensor_parallel_size": 2,
        "enable_lora": True,
        "seed": 7,
    }
    assert json.loads((out / "qwen/1/multi_lora.json").read_text()) == {"sql": "/loras/sql"}


def test_it_makes_what_the_llm_api_backend_reads(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = make(config)

    assert code == 0
    made = read_config((out / "llama/config.pbtxt").read_text())
    assert (made.backend, [(group.kind, group.count) for group in made.instance_group]) == ("python", [("KIND_CPU", 1)])
    assert (made.model_transaction_policy, made.max_batch_size) == (None, 0)
    assert YAML(typ="safe").load((out / "llama/1/model.yaml").read_text()) == {
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "backend": "pytorch",
        "kv_cache_config": {"free_gpu_memory_fraction": 0.8},
        "cuda_graph_config": {"enable_padding": True},
        "triton_config": {"max_batch_size": 0, "decoupled": True, "cancellation_check_period_ms": 100},
    }
    assert "trtllm-serve" in capsys.readouterr().err


def test_its_program_is_the_one_of_the_release(config: Path, tmp_path: Path) -> None:
    """model.py and helpers.py of TensorRT-LLM are found where its image has them, and are not copied."""
    _, out = make(config)
    release = tmp_path / "release"
    release.mkdir()
    (release / "helpers.py").write_text("WORD = 'helped'\n")
    (release / "model.py").write_text("from helpers import WORD\nclass TritonPythonModel:\n    word = WORD\n")
    # Triton imports it so, with the version's folder on the path too.
    load = (
        "import sys, importlib as i\nsys.path += ['.', '1']; print(i.import_module('1.model').TritonPythonModel.word)"
    )

    done = subprocess.run(
        [sys.executable, "-c", load],
        cwd=out / "llama",
        env={"TRTLLM_LLMAPI_PROGRAM": str(release)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout, done.stderr) == ("helped\n", "")
    assert not (out / "llama/1/helpers.py").exists()


def test_nothing_is_found_in_what_it_makes(config: Path) -> None:
    _, out = make(config)

    assert list(lint_repository(files_of(out, ""))) == []


def test_a_file_that_says_something_else_is_never_written_over(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out = make(config)
    mine = out / "qwen/1/model.json"
    mine.write_text("mine")
    (out / "llama/config.pbtxt").unlink()

    code, _ = make(config)

    assert code != 0
    assert str(mine) in capsys.readouterr().err
    assert mine.read_text() == "mine"
    assert not (out / "llama/config.pbtxt").exists()


def test_force_writes_over_it(config: Path) -> None:
    _, out = make(config)
    before = (out / "qwen/1/model.json").read_text()
    (out / "qwen/1/model.json").write_text("mine")

    assert make(config, "--force")[0] == 0
    assert (out / "qwen/1/model.json").read_text() == before
    assert make(config)[0] == 0, "the same files may be there"


@pytest.mark.parametrize("name", ["../../x", "/x", "a b", "a/b", ".."])
def test_a_name_that_is_no_folder_is_refused(config: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    config.write_text(FILE.replace("        qwen:", f"        '{name}':").replace("engine: triton}", "engine: vllm}"))

    code, out = make(config)

    assert code != 0
    assert name in capsys.readouterr().err
    assert not out.exists()


def test_only_a_triton_with_models_has_a_repository(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make(config, engine="vllm")[0] != 0
    assert "no Triton engine" in capsys.readouterr().err
    config.write_text(FILE.partition("      models:")[0] + "models: {qwen: {engine: triton}}\n")
    assert make(config)[0] != 0
    assert "add models:" in capsys.readouterr().err


def test_the_repository_of_the_compose_file_is_what_its_settings_make() -> None:
    """`make config` renews it."""
    kept = Path("config/engines/triton")
    before = files_of(kept, "")

    assert main(["engines", "repository", "triton", "--config", "config/compose/gpu.yaml", "--out", str(kept)]) == 0
    assert files_of(kept, "") == before
