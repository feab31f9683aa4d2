"""`turnout engines lint`: what it takes, how it answers, and with which exit code."""

import json
from pathlib import Path

import pytest

from gateway.cli import main
from tests.integration.launches.setups import GOLDEN
from tests.unit.engines.lint import composed, layouts

ROUTING = """\
engines:
  qwen:
    kind: vllm
    urls: [http://127.0.0.1:8000]
    launch:
      model: Qwen/Qwen3-8B
      gpu_memory_utilization: 0.9
      extra_args: [--seed, 7]
models:
  qwen: {engine: qwen, model: Qwen/Qwen3-8B}
"""


def lint(*arguments: str | Path) -> int:
    return main(["engines", "lint", *map(str, arguments)])


def rules(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> list[tuple[str, int | None]]:
    lint(*arguments, "--format", "json")
    return [(finding["rule"], finding["line"]) for finding in json.loads(capsys.readouterr().out)]


def laid_out(folder: Path, *named: str) -> Path:
    for layout in layouts.RECORDED:
        for path, content in layout.content.items() if layout.name in named else ():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if not path.endswith("/"):
                file.write_bytes(content)
            else:
                file.mkdir(exist_ok=True)
    return folder


def test_a_repository_without_faults_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lint(laid_out(tmp_path, "ok_minimal")) == 0
    assert capsys.readouterr().out == "nothing found\n"


def test_an_error_has_its_place_its_reason_its_fix_and_its_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lint(laid_out(tmp_path, "ok_minimal", "bad_json")) == 1

    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{tmp_path}/bad_json/1/model.json:1: error: this is no JSON: ")
    assert first.endswith(" (no comments, no comma before a bracket) [json-syntax]")
    assert last == "1 error"


def test_warnings_alone_are_no_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lint(laid_out(tmp_path, "count_2")) == 0
    assert capsys.readouterr().out.endswith("1 warning\n")


@pytest.mark.parametrize("part", ["bad_json", "bad_json/config.pbtxt", "bad_json/1/model.json"])
def test_one_model_or_one_of_its_files_will_do(tmp_path: Path, part: str, capsys: pytest.CaptureFixture[str]) -> None:
    laid_out(tmp_path, "no_backend", "bad_json")

    assert rules(capsys, tmp_path / part) == [("json-syntax", 1)]


def test_an_empty_version_is_seen_on_the_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rules(capsys, laid_out(tmp_path, "empty_version")) == [("no-model-json", None)]


def test_models_that_ask_for_more_than_a_gpu_together_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rules(capsys, laid_out(tmp_path, "ok_minimal", "ok_kind_cpu")) == [("memory-sum", None)]


def test_a_compose_file_is_known_by_its_services(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "compose.yaml"
    file.write_text(composed.PLANTED[0].text)

    assert rules(capsys, file) == [(composed.PLANTED[0].rule, composed.PLANTED[0].line)]


def test_a_script_is_looked_through(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "start.sh"
    file.write_text(
        "#!/bin/sh\nset -e\ntrtllm-build --checkpoint_dir c --output_dir e\nvllm serve m \\\n  --task embed\n"
    )

    assert rules(capsys, file) == [("removed-program", 3), ("removed-flag", 5)]


def test_github_makes_annotations_of_the_findings(capsys: pytest.CaptureFixture[str]) -> None:
    assert lint("--command", "vllm serve m --port 0", "--format", "github") == 1
    assert (
        capsys.readouterr().out
        == "::error file=command,line=1,title=turnout out-of-range::--port is 0 (from 1 to 65535)\n"
    )


@pytest.mark.parametrize(
    ("right", "wrong", "found"),
    [
        ("0.9", "0.1", ("sample-value", 7)),
        ("[--seed, 7]", "[--swap-space, 4]", ("removed-flag", 8)),
        ("[--seed, 7]", "[--cpu-offload-gb, -1]", ("out-of-range", 8)),
        ("engine: qwen, model: Qwen/Qwen3-8B", "engine: qwen, model: Qwen/Qwen3-4B", ("served-name", 10)),
        ("urls: [http://127.0.0.1:8000]", "urls: [http//127]", ("settings", 4)),
    ],
)
def test_a_routing_file_is_checked_with_its_launches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], right: str, wrong: str, found: tuple[str, int]
) -> None:
    file = tmp_path / "turnout.yaml"
    file.write_text(ROUTING)
    assert rules(capsys, file) == []
    file.write_text(ROUTING.replace(right, wrong))

    assert rules(capsys, file) == [found]


TRITON = """\
engines:
  triton:
    kind: triton
    urls: [http://127.0.0.1:9000]
    launch:
      repository: ./models
      tokenizer: Qwen/Qwen3-8B
      models:
        one: {backend: vllm, model: Qwen/Qwen3-8B, gpu_memory_utilization: 0.5}
        two: {backend: vllm, model: Qwen/Qwen3-4B, gpu_memory_utilization: 0.5}
models:
  one: {engine: triton}
"""


@pytest.mark.parametrize(
    ("right", "wrong", "found"),
    [
        ("", "", []),
        ("        two: {backend: vllm, model: Qwen/Qwen3-4B, gpu_memory_utilization: 0.5}\n", "", ["sample-value"]),
        ("two:", "'../two':", ["model-name"]),
    ],
)
def test_the_repository_that_a_launch_makes_is_looked_into(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], right: str, wrong: str, found: list[str]
) -> None:
    file = tmp_path / "turnout.yaml"
    file.write_text(TRITON.replace(right, wrong) if right else TRITON)

    assert [rule for rule, _ in rules(capsys, file)] == found


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", "x: ["),
        ("a.yaml", "kind: Deployment"),
        ("a.yaml", ""),
        ("a.sh", "ls"),
        ("a.bin", "\0"),
        ("b.sh", "vllm serve 'x"),
    ],
)
def test_what_cannot_be_looked_into_is_told_with_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)

    assert lint(tmp_path / name) == 2
    assert capsys.readouterr().err.startswith(f"turnout: {tmp_path / name}: ")


def test_a_file_that_is_not_there_and_no_file_at_all_are_told_with_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lint(tmp_path / "none") == 2
    assert lint("--command", "ls") == 2
    assert lint() == 2
    assert lint(tmp_path, "--command", "vllm serve m") == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_folder_without_models_is_told_with_code_2(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()

    assert lint(tmp_path) == 2


def test_a_program_that_only_the_server_has_is_not_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    laid_out(tmp_path, "py_dyn_ok")
    program = tmp_path / "py_dyn_ok/1/model.py"
    program.unlink()
    program.symlink_to("/opt/elsewhere/model.py")

    assert rules(capsys, tmp_path) == []


def test_bytes_that_are_no_text_are_told_with_code_2(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"\xff\xfe\x00")

    assert lint(tmp_path / "a.yaml") == 2


@pytest.mark.parametrize(
    "path", sorted([*GOLDEN.glob("*.compose.yaml"), *GOLDEN.glob("*.sh")]), ids=lambda path: path.name
)
def test_nothing_is_found_in_what_launch_settings_make(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rules(capsys, path) == []


@pytest.mark.parametrize(
    "path",
    [
        "docker-compose.yml",
        "config/engines/triton",
        "config/turnout.yaml",
        "config/compose/gpu.yaml",
        "config/compose/cpu.yaml",
    ],
)
def test_nothing_is_found_in_the_files_of_this_project(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert rules(capsys, path) == []
