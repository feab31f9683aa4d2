"""docs/engines-setup.md: its files are valid, its commands print what it shows, its checks are answered.

``python -m tests.integration.test_engines_setup_page`` writes into the page what the commands print now.
"""

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from engines.launch.install import INSTALL
from gateway.cli import main
from gateway.settings.advice import load_advised
from tests.conftest import ROOT
from tests.running import LOOPBACK, answers, free_port, running

PAGE = ROOT / "docs" / "engines-setup.md"
BLOCK = re.compile(r"^```(?P<language>\w+)(?: (?P<name>\S+))?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
PORTS = {"8000": ("vllm", "Qwen/Qwen3-8B"), "8001": ("trtllm", "Qwen/Qwen3-8B"), "9000": ("triton", "llama")}
BLOCKS = [(match["language"], match["body"]) for match in BLOCK.finditer(PAGE.read_text())]
FILES = {body.partition("\n")[0].removeprefix("# "): body for language, body in BLOCKS if language == "yaml"}
OTHERS = {match["name"]: match["body"] for match in BLOCK.finditer(PAGE.read_text()) if match["name"]}
"""Files that are no configuration of the gateway."""
SHELL = [line for language, body in BLOCKS if language == "sh" for line in body.splitlines()]
SETUP = {"uv venv", *INSTALL.values()}


def write_files(folder: Path) -> None:
    for name, body in (FILES | OTHERS).items():
        (folder / name).write_text(body)


def run(line: str) -> str:
    """What a line of the page prints; `> FILE` puts it there instead."""
    program, *words = shlex.split(line)
    assert program == "turnout"
    words, target = (words[:-2], words[-1]) if ">" in words else (words, None)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        main(words)
    if target is None:
        return printed.getvalue()
    Path(target).write_text(printed.getvalue())
    return ""


def renewed(body: str) -> str:
    """A block with commands and what they print now."""
    commands = [line.removeprefix("$ ") for line in body.splitlines() if line.startswith("$ ")]
    return "".join(f"$ {command}\n{run(command)}" for command in commands)


@contextlib.contextmanager
def bare_machine() -> Iterator[None]:
    """A folder with the page's files, on a machine without engines and GPUs."""
    before, path = Path.cwd(), os.environ["PATH"]
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        os.chdir(folder)
        os.environ["PATH"] = folder
        try:
            yield
        finally:
            os.chdir(before)
            os.environ["PATH"] = path


def test_commands_print_what_the_page_shows() -> None:
    with bare_machine():
        for language, body in BLOCKS:
            if language == "console":
                assert renewed(body) == body, f"stale: python -m {__name__}"


@pytest.mark.parametrize("name", FILES)
def test_files_are_valid_and_all_but_one_without_a_warning(name: str, tmp_path: Path) -> None:
    write_files(tmp_path)
    loaded = load_advised(tmp_path / name, {"QWEN_KEY": "key"})

    assert bool(loaded.warnings) == (name == "wrong.yaml")


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, int]]:
    """A simulated engine for each port of the page."""
    folder = tmp_path_factory.mktemp("engines")
    ports = {port: free_port() for port in PORTS}
    with contextlib.ExitStack() as exits:
        started = []
        for port, (kind, model) in PORTS.items():
            command = [sys.executable, "-m", "gateway", "simulate", kind, "--port", str(ports[port]), "--model", model]
            started.append((exits.enter_context(running(f"{kind}", command, folder)), port))
        for program, port in started:
            path = "/health/ready" if PORTS[port][0] == "triton" else "/health"
            url = f"http://{LOOPBACK}:{ports[port]}{path}"
            program.wait_until(lambda url=url: answers(url), 60)  # type: ignore[misc]
        yield ports


@pytest.mark.parametrize("line", [line for line in SHELL if line not in SETUP])
def test_checks_are_answered(line: str, simulated: dict[str, int]) -> None:
    """Every shell line is either what the makers say to install, or a request with curl."""
    program, url, *options = shlex.split(line)
    assert program == "curl"
    given = dict(zip(options[::2], options[1::2], strict=True))
    assert given.keys() <= {"-H", "-d"}
    found = re.match(r"http://127\.0\.0\.1:(\d+)", url)
    assert found is not None
    here = url.replace(f":{found[1]}", f":{simulated[found[1]]}")

    header = given.get("-H", "accept: */*").split(": ")
    method = "POST" if "-d" in given else "GET"
    answer = httpx2.request(method, here, headers={header[0]: header[1]}, content=given.get("-d"), timeout=30)

    assert answer.status_code == 200
    if "-d" in given:
        assert answer.json()["choices"][0]["message"]["content"]


if __name__ == "__main__":
    with bare_machine():
        text = BLOCK.sub(
            lambda match: f"```console\n{renewed(match['body'])}```" if match["language"] == "console" else match[0],
            PAGE.read_text(),
        )
    PAGE.write_text(text)
