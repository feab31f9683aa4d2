"""`turnout engines advise` as its users run it: the program, real files, a machine's nvidia-smi."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from ruamel.yaml import YAML

from engines.launch.kinds import LAUNCHES
from engines.profile import EngineKind
from gateway.cli import main
from tests.unit.engines.advice.published import PUBLISHED

QWEN = PUBLISHED["Qwen/Qwen3-8B"]
Run: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs the command on a machine whose nvidia-smi says what is given; None: it has none."""

    def run(*words: str, smi: str | None = None) -> subprocess.CompletedProcess[str]:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        if smi is not None:
            program = folder / "nvidia-smi"
            program.write_text(f'#!/bin/sh\ntest "$1" = --query-gpu=name,memory.total,compute_cap || exit 6\n{smi}\n')
            program.chmod(0o755)
        return subprocess.run(
            [sys.executable, "-m", "gateway", "engines", "advise", *words],
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, "PATH": f"{folder}:/usr/bin:/bin", "NO_COLOR": "1"},
        )

    return run


@pytest.fixture
def qwen(tmp_path: Path) -> Path:
    """A model's folder, with its config.json only."""
    folder = tmp_path / "qwen3-8b"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(QWEN.config))
    return folder


def as_json(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_json_has_what_scripts_count_on(run: Run, qwen: Path) -> None:
    done = run("--model", str(qwen), "--gpu", "H100", "--need", "tools,json", "--concurrency", "8", "--json")
    found = as_json(done)

    assert done.returncode == 0, done.stderr
    assert found["fits"] is True
    assert found["weights_bytes"] == 2 * QWEN.parameters
    assert found["kv_bytes_per_token"] == QWEN.kv
    assert {one["kind"]: one["supported"] for one in found["engines"]} == {
        "vllm": True,
        "trtllm": True,
        "triton": False,
    }
    assert found["engines"][0]["settings"] == {
        "model": str(qwen),
        "max_model_len": 40960,
        "max_num_seqs": 8,
        "tool_parser": "hermes",
        "reasoning_parser": "qwen3",
    }


def test_every_launch_that_is_printed_is_one_that_check_accepts(
    run: Run, qwen: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed = run("--model", str(qwen), "--gpu", "L40S", "--gpus", "2", "--context", "16K", "--need", "tools").stdout
    kinds = {}
    for part in printed.split("\n\n"):
        kind = part.partition(":")[0]
        if "  launch:\n" in part:
            kinds[kind] = YAML(typ="safe", pure=True).load(part.partition("  launch:\n")[2])
    file = tmp_path / "turnout.yaml"
    engines = {
        kind: {"kind": kind, "urls": [f"http://127.0.0.1:{9000 + number}"], "launch": launch}
        for number, (kind, launch) in enumerate(kinds.items())
    }
    models = {f"m-{kind}": {"engine": kind, "model": str(qwen)} for kind in kinds}
    with file.open("w") as written:
        YAML().dump({"engines": engines, "models": models}, written)

    assert kinds.keys() == {"vllm", "trtllm", "triton"}
    for kind, launch in kinds.items():
        LAUNCHES[EngineKind(kind)].model_validate(launch)
    assert main(["check", str(file)]) == 0, capsys.readouterr().err


def test_the_arithmetic_is_shown_and_nothing_is_claimed_about_speed(run: Run, qwen: Path) -> None:
    printed = run("--model", str(qwen), "--gpu", "h100").stdout

    assert "8,190,735,360 parameters * 2 bytes (bfloat16) = 15.3 GiB" in printed
    assert "36 layers * 2 * 8 heads * 128 * 2 bytes = 147,456 bytes a token" in printed
    assert "0.92 * 79.2 GiB - weights 15.3 GiB - computing" in printed
    assert "Nothing here is about speed" in printed


def test_the_size_of_a_checkpoint_is_taken_from_its_index(run: Run, qwen: Path) -> None:
    index = qwen / "model.safetensors.index.json"
    index.write_text('{"metadata": {"total_size": 9000000000}, "weight_map": {}}')
    measured = as_json(run("--model", str(qwen), "--gpu", "H100", "--json"))
    index.write_text("{")
    broken = as_json(run("--model", str(qwen), "--gpu", "H100", "--json"))

    assert measured["weights_bytes"] == 9_000_000_000
    assert broken["weights_bytes"] == 2 * QWEN.parameters


def test_this_machines_gpus_are_read_from_nvidia_smi(run: Run, qwen: Path) -> None:
    smi = "echo 'NVIDIA H100 80GB HBM3, 81559 MiB, 9.0'\necho 'NVIDIA H100 80GB HBM3, 81559 MiB, 9.0'"
    found = as_json(run("--model", str(qwen), "--json", smi=smi))

    assert found["gpu"] == {
        "name": "NVIDIA H100 80GB HBM3",
        "count": 2,
        "memory_bytes": 81559 * 2**20,
        "compute_capability": 9.0,
    }
    assert all(engine["supported"] for engine in found["engines"])


def test_a_gpu_that_only_nvidia_smi_knows_is_judged_by_what_it_says(run: Run, qwen: Path) -> None:
    done = run("--model", str(qwen), "--json", smi="echo 'NVIDIA X900, 98304 MiB, 13.0'")

    supported = {engine["kind"]: engine["supported"] for engine in as_json(done)["engines"]}
    assert supported == {"vllm": True, "trtllm": False, "triton": True}
    assert "NVIDIA X900 is not known here" in done.stderr


def test_different_gpus_in_one_machine_are_not_added_up(run: Run, qwen: Path) -> None:
    done = run("--model", str(qwen), "--json", smi="echo 'NVIDIA L4, 23034 MiB, 8.9'\necho 'Tesla T4, 15360 MiB, 7.5'")

    assert as_json(done)["gpu"]["count"] == 1
    assert "different GPUs" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--model", "absent", "--gpu", "H100"), "absent cannot be read: give a model's config.json"),
        (("--model", "{broken}", "--gpu", "H100"), "is not JSON"),
        (("--model", "{list}", "--gpu", "H100"), "must be one JSON object"),
        (("--model", "{other}", "--gpu", "H100"), "num_attention_heads is missing"),
        (("--model", "8B", "--gpu", "MI300X"), 'the GPU "MI300X" is not known here; known: B300'),
        (("--model", "8B"), "no GPU is named, and nvidia-smi finds none here"),
        (("--model", "8B", "--gpu", "H100", "--need", "speed"), "expected some of tools, embeddings, json"),
        (("--model", "8B", "--gpu", "H100", "--context", "long"), "expected a number of tokens"),
    ],
)
def test_what_is_not_known_is_said_in_one_line(words: tuple[str, ...], said: str, run: Run, tmp_path: Path) -> None:
    texts = {"broken": "{", "list": "[]", "other": "{}"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    done = run(*(word.format(**{name: str(tmp_path / name) for name in texts}) for word in words))

    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


def test_an_nvidia_smi_that_fails_is_as_none(run: Run) -> None:
    assert "nvidia-smi finds none" in run("--model", "8B", smi="echo broken driver; exit 9").stderr
    assert "nvidia-smi finds none" in run("--model", "8B", smi="echo 'NVIDIA X, [N/A], 8.0'").stderr


def test_a_bare_size_gives_the_weights_only_and_says_so(run: Run) -> None:
    done = run("--model", "7B", "--gpu", "L4", "--json")
    found = as_json(done)

    assert (found["fits"], found["weights_bytes"], found["kv_bytes_per_token"]) == (True, 14_000_000_000, None)
    assert any("config.json" in caution for caution in found["cautions"])


def test_what_fits_nowhere_ends_with_one(run: Run) -> None:
    done = run("--model", "70B", "--gpu", "L4")

    assert done.returncode == 1
    assert "the weights do not fit on 1 GPU" in done.stdout
