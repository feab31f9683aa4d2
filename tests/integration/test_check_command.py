"""`turnout check` and the frame of the command line, as processes."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import pytest

from gateway.cli.commands import COMMANDS
from tests.conftest import ROOT

GOOD = """\
engines:
  qwen: {kind: vllm, urls: [http://127.0.0.1:8000, http://127.0.0.1:8001]}
  llama: {kind: trtllm, urls: [http://127.0.0.1:8002]}
models:
  chat:
    aliases: [gpt-4o-mini]
    targets: [{engine: qwen, model: Qwen/Qwen2.5-1.5B-Instruct}, {engine: llama}]
"""

BAD = """\
server:
  port: 80x
engines:
  qwen: {kind: vllm, urls: [http://h:1], api_key: sk-secret, parser: hermez}
models:
  chat: {engine: qwn}
"""


def environment(**more: str) -> dict[str, str]:
    """The environment without what would change the output or the settings."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("TURNOUT_", "NO_", "FORCE_"))}
    return plain | {"TERM": "xterm", "COLUMNS": "200"} | more


def turnout(*arguments: object, folder: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gateway", *map(str, arguments)]
    return subprocess.run(
        command, cwd=folder, env=env or environment(), capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "turnout.yaml"
    path.write_text(GOOD)
    return path


def test_a_valid_file_is_summed_up_with_exit_code_0(file: Path) -> None:
    done = turnout("check", "turnout.yaml", folder=file.parent)
    assert done.stdout.splitlines() == [
        "turnout.yaml: OK",
        "  engine qwen: vllm, 2 replicas",
        "  engine llama: trtllm, 1 replica",
        "  model chat: chat, Qwen/Qwen2.5-1.5B-Instruct on qwen, chat on llama; also called gpt-4o-mini",
    ]
    assert (done.returncode, done.stderr) == (0, "")


def test_every_problem_is_shown_with_a_pointer_and_exit_code_2(file: Path) -> None:
    file.write_text(BAD)
    done = turnout("check", "turnout.yaml", folder=file.parent)
    assert done.stderr.splitlines() == [
        'turnout.yaml:2:9: server.port: expected a whole number, not "80x" (for example port: 8080)',
        "     2 |   port: 80x",
        "       |         ^",
        (
            "turnout.yaml:4:70: engines.qwen.parser: expected none, or a name that an engine has for it, "
            'not "hermez" (did you mean hermes, cohere)'
        ),
        "     4 |   qwen: {kind: vllm, urls: [http://h:1], api_key: *********, parser: hermez}",
        "       |                                                                      ^",
        'turnout.yaml:6:18: models.chat.engine: no engine has this name: "qwn" (did you mean "qwen"?)',
        "     6 |   chat: {engine: qwn}",
        "       |                  ^",
        "3 problems",
    ]
    assert (done.returncode, done.stdout) == (2, "")


ODD = GOOD.replace("[http://127.0.0.1:8000, http://127.0.0.1:8001]", "[http://h:1], keep_alive: 30s")


def test_warnings_are_shown_and_the_file_is_good(file: Path) -> None:
    """They go to stderr, so that the summary on stdout stays what it is."""
    file.write_text(ODD)
    done = turnout("check", "turnout.yaml", folder=file.parent)
    assert done.stdout.splitlines()[0] == "turnout.yaml: OK, with 1 warning"
    first, line, caret = done.stderr.splitlines()
    assert first.startswith(
        "turnout.yaml:2:54: warning: engines.qwen.keep_alive: vLLM closes idle connections after 5s"
    )
    assert line[caret.index("^") :] == "30s}"
    assert done.returncode == 0


@pytest.mark.parametrize(("text", "code"), [(GOOD, 0), (ODD, 2), (BAD, 2)])
def test_strict_turns_warnings_into_a_failure(file: Path, text: str, code: int) -> None:
    file.write_text(text)
    assert turnout("check", "--strict", file, folder=file.parent).returncode == code


def test_a_key_whose_time_is_over_is_a_warning(file: Path) -> None:
    entry = f'{{name: a, expires: 2020-01-31, hash: "sha256:{"0" * 64}"}}'
    file.write_text(f"{GOOD}keys: [{entry}]\n")
    done = turnout("check", file, folder=file.parent)

    assert done.returncode == 0
    assert f'{file}:8:27: warning: keys[0].expires: has passed: the key "a" is refused' in done.stderr


def test_programs_get_json(file: Path) -> None:
    file.write_text(ODD)
    done = turnout("check", "turnout.yaml", "--format", "json", folder=file.parent)
    told = json.loads(done.stdout)
    assert (done.returncode, done.stderr, told["ok"]) == (0, "", True)
    assert told["problems"][0] | {"message": "", "suggestion": ""} == {
        "level": "warning",
        "rule": "keep-alive",
        "key": "engines.qwen.keep_alive",
        "message": "",
        "suggestion": "",
        "file": "turnout.yaml",
        "line": 2,
        "column": 54,
        "variable": None,
    }
    file.write_text(BAD)
    done = turnout("check", "turnout.yaml", "--format", "json", folder=file.parent)
    told = json.loads(done.stdout)
    assert (done.returncode, done.stderr, told["ok"]) == (2, "", False)
    assert [(one["level"], one["line"]) for one in told["problems"]] == [("error", 2), ("error", 4), ("error", 6)]
    assert "sk-secret" not in done.stdout


def test_github_gets_annotations(file: Path) -> None:
    """A file's name may hold what separates properties."""
    odd = file.with_name("a,b:c%.yaml")
    odd.write_text(ODD.replace("gpt-4o-mini", "chat"))
    done = turnout("check", odd.name, "--format", "github", folder=file.parent)
    assert done.stdout.startswith(
        "::error file=a%2Cb%3Ac%25.yaml,line=6,col=15,title=turnout::models.chat.aliases[0]: "
    )
    file.write_text(ODD)
    done = turnout("check", "turnout.yaml", "--format", "github", folder=file.parent)
    assert done.stdout.startswith("::warning file=turnout.yaml,line=2,col=54,title=turnout keep-alive::engines.qwen.")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("option", "name"), [("--schema", "turnout.schema.json"), ("--reference", "turnout.reference.yaml")]
)
def test_the_generated_files_are_printed_without_a_file_to_check(option: str, name: str, tmp_path: Path) -> None:
    done = turnout("check", option, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (ROOT / "config" / name).read_text()


def test_a_long_line_is_cut_around_the_mistake(file: Path) -> None:
    engines = ", ".join(f"e{n}: {{kind: vllm, urls: [http://h:{n}]}}" for n in range(1, 40))
    file.write_text(f"engines: {{{engines}, last: {{kind: vlm, urls: [http://h:1]}}}}\n")
    done = turnout("check", file, folder=file.parent)
    _, shown, caret = done.stderr.splitlines()
    assert len(shown) < 130
    assert shown[caret.index("^") :].startswith("vlm")


def test_the_pointer_stands_below_wide_characters(file: Path) -> None:
    """A character that takes two columns on a terminal moves the caret by two."""
    file.write_text(GOOD + "  模型: {engine: qwn}\n")
    done = turnout("check", file, folder=file.parent)
    assert done.stderr.splitlines()[2] == f"       | {' ' * 17}^"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "away.yaml"], "away.yaml: no such file (turnout init writes one for engines that run)"),
        (["check", "."], ".: cannot be read: Is a directory"),
        (["chekc"], 'turnout: no command "chekc" (did you mean "check"?)'),
        (["zzz"], 'turnout: no command "zzz" (see turnout --help)'),
        (["check", "--colour"], "turnout check: No such option: --colour (see turnout check --help)"),
        (["check", "a", "b"], "turnout check: Got unexpected extra argument(s) (b) (see turnout check --help)"),
        (["serve", "--port"], "turnout serve: Option '--port' requires an argument (see turnout serve --help)"),
        (
            ["admin", "drain", "q", "--url"],
            "turnout admin drain: Option '--url' requires an argument (see turnout admin drain --help)",
        ),
        (
            ["serve", "--engine", "vlm=http://h:1"],
            'turnout serve: --engine vlm=…: expected one of vllm, trtllm, triton (did you mean "vllm"?)',
        ),
        (["--zzz"], "turnout: No such option: --zzz (see turnout --help)"),
    ],
)
def test_an_error_is_one_line_on_stderr(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = turnout(*arguments, folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"{said}\n")


def test_without_a_file_the_error_says_what_to_do(tmp_path: Path) -> None:
    done = turnout("check", folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("no configuration file: looked for turnout.yaml and config/turnout.yaml (name one, ")


def test_the_file_and_overrides_can_come_from_the_environment(file: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = turnout("check", folder=elsewhere, env=environment(TURNOUT_CONFIG=str(file)))
    assert done.stdout.startswith(f"{file}: OK")
    done = turnout("check", file, folder=elsewhere, env=environment(TURNOUT_SERVER__PORT="x"))
    assert done.stderr == "TURNOUT_SERVER__PORT: server.port: expected a whole number (for example port: 8080)\n"
    assert done.returncode == 2


def test_help_lists_every_command(tmp_path: Path) -> None:
    for arguments in ([], ["--help"], ["-h"]):
        done = turnout(*arguments, folder=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert {line.split()[0] for line in done.stdout.partition("Commands:")[2].splitlines() if line} >= {
            row.name for row in COMMANDS
        }


@pytest.mark.parametrize("name", [row.name for row in COMMANDS])
def test_every_command_explains_itself(name: str, tmp_path: Path) -> None:
    done = turnout(name, "--help", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: turnout {name}")


def test_version_tells_the_installed_version(tmp_path: Path) -> None:
    done = turnout("version", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"turnout {version('turnout')}\n")


@pytest.mark.parametrize(("more", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_are_for_terminals_that_want_them(more: dict[str, str], coloured: bool, file: Path) -> None:
    file.write_text(BAD)
    ours, theirs = pty.openpty()
    try:
        command = [sys.executable, "-m", "gateway", "check", str(file)]
        done = subprocess.run(command, env=environment(**more), stderr=theirs, timeout=60, check=False)
        shown = os.read(ours, 65536).decode()
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.returncode == 2
    assert "3 problems" in shown
    assert ("31m" in shown) is coloured


@pytest.mark.parametrize(("text", "code"), [(GOOD, 0), (BAD, 2)])
def test_a_reader_that_leaves_does_not_change_the_exit_code(file: Path, text: str, code: int) -> None:
    """As in `turnout check FILE 2>&1 | head -1`."""
    file.write_text(text)
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "gateway", "check", str(file)]
    done = subprocess.run(
        command, cwd=file.parent, env=environment(), stdout=writing, stderr=writing, timeout=60, check=False
    )
    os.close(writing)

    assert done.returncode == code


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_is_an_option_too(tmp_path: Path, option: str) -> None:
    done = turnout(option, folder=tmp_path)

    assert (done.returncode, done.stdout) == (0, turnout("version", folder=tmp_path).stdout)


@pytest.mark.parametrize("group", ["engines", "keys", "tools"])
def test_a_group_of_commands_alone_shows_its_help(tmp_path: Path, group: str) -> None:
    done = turnout(group, folder=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == turnout(group, "--help", folder=tmp_path).stdout
    assert "\n\nCommands:\n" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("tools", "detect", "binary"), "turnout: binary: is not UTF-8 text\n"),
        (("tools", "detect", "folder"), "turnout: folder/tokenizer_config.json: is not UTF-8 text\n"),
        (("tools", "detect", "away"), "turnout: away: No such file or directory\n"),
        (("tools", "parse", "-f", "hermes", "--tools", "away"), "turnout: away: No such file or directory\n"),
        (("tools", "table", "--write", "binary"), "turnout: binary: is not UTF-8 text\n"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_in_one_line(tmp_path: Path, arguments: tuple[str, ...], line: str) -> None:
    (tmp_path / "binary").write_bytes(b"\x7fELF\xd0")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "tokenizer_config.json").write_bytes(b"\xff\xfe")
    done = turnout(*arguments, folder=tmp_path)

    assert (done.returncode, done.stdout, done.stderr) == (1, "", line)
