"""Transcripts in documents: ```console blocks whose commands are run, and whose output must be what stands there.

    python -m tests.support.transcript docs/operations.md      # runs them and writes their output anew

All blocks of a document are one session: one shell in one empty folder. `$` begins a command, `>` goes on with it.
Ports are exchanged for free ones on the way in and back on the way out; what differs from run to run is written as `…`.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tests.running import free_port
from tests.support.process import clean_environment

PATIENCE: Final = 110.0
"""Seconds for a whole session."""

_BLOCK: Final = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
_PORT: Final = re.compile(r"(?<=[:= ])(80\d\d|90\d\d)\b")
_END: Final = "\x01"
_VARYING: Final = (
    (re.compile(r"(chatcmpl-)[0-9a-f]+"), r"\1…"),
    (re.compile(r'("(?:created|loaded_at)":)[\d.]+'), r"\1…"),
    (re.compile(r'("hash":")[0-9a-f]{64}'), r"\1…"),
    (re.compile(r'("request_id":")[0-9a-f]+'), r"\1…"),
)


@dataclass(frozen=True, slots=True)
class Step:
    """A command as it stands in the document, and its output."""

    command: str
    output: str

    def __str__(self) -> str:
        """As in the document."""
        first, *more = self.command.split("\n")
        return "".join([f"$ {first}\n", *(f"> {line}\n" for line in more), self.output])


def steps_of(document: str) -> list[Step]:
    """The commands of all blocks, with the output that stands below each."""
    found: list[Step] = []
    for block in _BLOCK.findall(document):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Step(line[2:], ""))
            elif line.startswith("> ") and not found[-1].output:
                found[-1] = Step(f"{found[-1].command}\n{line[2:]}", "")
            else:
                found[-1] = replace(found[-1], output=f"{found[-1].output}{line}\n")
    return found


def run(steps: list[Step], folder: Path) -> list[Step]:
    """The same commands with the output that they have now."""
    ports = {port: str(free_port()) for step in steps for port in _PORT.findall(step.command)}
    script = "".join(f"{{ {_with(ports, step.command)}\n}} 2>&1\nprintf '%s\\n' '{_END}'\n" for step in steps)
    # The file that `init` writes has the usual port.
    here = {"TURNOUT_SERVER__PORT": ports["8080"]} if "8080" in ports else {}
    here |= {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1"}
    said_to = folder / ".said"  # a file: what goes on in the background would keep a pipe open
    with said_to.open("w") as out:
        shell = subprocess.Popen(
            ["bash", "--norc", "-c", script],
            cwd=folder,
            env=clean_environment(**here, XDG_STATE_HOME=str(folder)),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        shell.wait(PATIENCE)
    finally:
        _end(shell.pid)
    output = said_to.read_text()
    back = {mine: port for port, mine in ports.items()}
    said = output.split(f"{_END}\n")
    assert len(said) == len(steps) + 1, f"the session ended early: {output[-2000:]}"
    said = [text.replace(f"{folder}/", "…/") for text in said]
    return [Step(step.command, steady(_with(back, text))) for step, text in zip(steps, said, strict=False)]


def steady(output: str) -> str:
    """Output without what differs from run to run; it ends with a newline."""
    for pattern, instead in _VARYING:
        output = pattern.sub(instead, output)
    return output if not output or output.endswith("\n") else f"{output}\n"


def rewritten(document: str, steps: list[Step]) -> str:
    """The document with these steps in its blocks."""
    left = iter(steps)
    return _BLOCK.sub(lambda block: "".join(map(str, _take(left, block[0].count("\n$ ") + 1))), document)


def _take(steps: Iterator[Step], count: int) -> Iterator[Step]:
    for _ in range(count):
        yield next(steps)


def _with(ports: Mapping[str, str], text: str) -> str:
    """The text with other ports."""
    if not ports:
        return text
    return re.sub(rf"\b(?:{'|'.join(ports)})\b", lambda found: ports[found[0]], text)


def _end(session: int) -> None:
    """Ends the shell and everything that it left running."""
    try:
        os.killpg(session, signal.SIGKILL)
    except ProcessLookupError:
        return


def main(name: str) -> None:
    document = Path(name)
    text = document.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="turnout-transcript-") as folder:
        document.write_text(rewritten(text, run(steps_of(text), Path(folder))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
