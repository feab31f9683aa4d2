"""Commands whose standard input, output or errors are closed, or full."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.process import clean_environment

FILE = "engines: {q: {kind: vllm, urls: [http://127.0.0.1:1]}}\nmodels: {m: {engine: q}}\n"


def shell(folder: Path, arguments: str, redirected: str) -> subprocess.CompletedProcess[str]:
    """Runs the command as a shell does with these redirections."""
    (folder / "turnout.yaml").write_text(FILE)
    return subprocess.run(
        ["sh", "-c", f"exec {shlex.quote(sys.executable)} -m gateway {arguments} {redirected}"],
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("redirected", ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("arguments", "code"), [("check", 0), ("check away.yaml", 2), ("tools parse -f hermes", 0)])
def test_a_closed_stream_changes_neither_exit_code_nor_the_others(
    tmp_path: Path, arguments: str, code: int, redirected: str
) -> None:
    done = shell(tmp_path, arguments, redirected if "<" in redirected else f"{redirected} </dev/null")

    assert done.returncode == code
    assert "Traceback" not in done.stderr
    if redirected in {">&-", "<&-"}:
        assert ("away.yaml: no such file" in done.stderr) == (code == 2)


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no device that is always full")
@pytest.mark.parametrize("arguments", ["check", "check --schema", "version"])
def test_output_that_cannot_be_written_is_one_line_and_code_1(tmp_path: Path, arguments: str) -> None:
    done = shell(tmp_path, arguments, "> /dev/full")

    assert done.returncode == 1
    assert done.stderr == "turnout: standard output: No space left on device\n"


def test_a_reader_that_leaves_changes_nothing(tmp_path: Path) -> None:
    done = shell(tmp_path, "check --reference", "| true")

    assert (done.returncode, done.stderr) == (0, "")
