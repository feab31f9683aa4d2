"""Commands that are given what they cannot use: one line that says what is wrong and what would be right."""

import os
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.cli.files import replace_whole
from tests.support.process import clean_environment

DEEP = '{"tools": ' + "[" * 100_000


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with odd files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TURNOUT_CONFIG", raising=False)
    (tmp_path / "deep.json").write_text(DEEP)
    (tmp_path / "tokenizer").mkdir()
    (tmp_path / "tokenizer" / "tokenizer_config.json").write_text(DEEP)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(DEEP)
    return tmp_path


@pytest.fixture
def taken() -> Iterator[str]:
    """A port that somebody listens on."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield str(listening.getsockname()[1])


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code and the one line."""
    code = main(arguments)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1, err
    return code, err


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("keys", "new", "a", "--priority", "nan"), 2, "--priority nan: expected a number"),
        (("keys", "new", "a", "--priority", "inf"), 2, "--priority inf: expected a number"),
        (("keys", "new", "a", "--models", ","), 2, "--models ,: expected names of models"),
        (("keys", "new", "a", "--expires", "2020-01-01"), 2, "--expires 2020-01-01: is over already"),
        (("keys", "new", "a", "--expires", "soon"), 2, "--expires soon: expected a date"),
        (("keys", "new", ""), 2, "a name has at least one character"),
        (("simulate", "vllm", "--api-key", ""), 2, "--api-key: a key has at least one character"),
        (("simulate", "ollama"), 2, "'ollama' is not one of 'vllm', 'trtllm', 'triton'"),
        (("apply", "x.yaml", "--timeout", "-1"), 2, "greater than or equal to 0"),
        (("apply", "x.yaml", "--timeout", "nan"), 2, "greater than or equal to 0"),
        (("check", "away.yaml"), 2, "away.yaml: no such file (turnout init writes one for engines that run"),
        (("check",), 2, "(name one, or set TURNOUT_CONFIG; turnout init writes one for engines that run)"),
        (("tools", "detect", "tokenizer"), 1, "no tool-call format recognised (turnout tools table lists all"),
        (
            ("tools", "parse", "-f", "hermes", "--tools", "deep.json"),
            2,
            "deep.json is not JSON: it is nested too deeply",
        ),
        (("tools", "parse", "-f", "zap"), 2, "unknown tool-call format 'zap' (turnout tools table lists all)"),
        (("engines", "advise", "--model", "deep.json"), 2, "deep.json is not JSON"),
        (("engines", "advise", "--model", "model"), 2, "config.json is not JSON"),
    ],
)
def test_it_says_what_is_wrong_and_what_would_be_right(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, told: str
) -> None:
    found, line = said(capsys, *arguments)

    assert found == code
    assert told in line
    assert "Value error" not in line


@pytest.mark.parametrize("arguments", [("simulate", "vllm"), ("demo",)])
def test_a_port_that_is_taken_is_named_with_what_this_command_can_do(taken: str, arguments: tuple[str, ...]) -> None:
    """As a process: what serves also sets the log up, for as long as its process lives."""
    done = subprocess.run(
        [sys.executable, "-m", "gateway", *arguments, "--port", taken],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert f"cannot listen on 127.0.0.1:{taken}: Address already in use" in done.stderr
    assert "--port" in done.stderr
    assert "--take-over" not in done.stderr


def test_names_of_models_may_have_blanks_between_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["keys", "new", "a", "--models", "b, c", "--models", " d "]) == 0

    assert 'models: ["b", "c", "d"]' in capsys.readouterr().out


def test_what_is_no_file_is_not_replaced_by_one(folder: Path) -> None:
    """A device or a pipe would be gone for everybody else."""
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    (folder / "link").symlink_to(pipe)
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match="no plain file stands there"):
            replace_whole(folder / name, b"text")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
