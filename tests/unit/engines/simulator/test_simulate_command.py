"""`turnout simulate` as a process."""

import asyncio
import signal
import sys

import pytest

from tests.contract.client import send
from tests.support.waiting import within
from tests.unit.engines.simulator.wire import request

RUN = "import sys, typer; from gateway.cli.simulate import simulate; typer.run(simulate)"


@pytest.mark.parametrize(
    ("kind", "number"), [("vllm", signal.SIGTERM), ("trtllm", signal.SIGINT), ("triton", signal.SIGTERM)]
)
async def test_it_prints_one_line_serves_and_ends_with_code_0(kind: str, number: signal.Signals) -> None:
    """The line has the URL; Ctrl-C and SIGTERM are ordinary ends."""
    options = ["--port", "0", "--model", "a", "--model", "b", "--inter-token", "0.001"]
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-c", RUN, kind, *options, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert program.stdout is not None
    assert program.stderr is not None
    try:
        line = (await within(program.stdout.readline(), 30.0, "the first line")).decode()
        port = int(line.split(" at ")[1].split(" ")[0].rsplit(":", 1)[1])
        answer = await send(port, request("/v1/models"))
        program.send_signal(number)
        assert await within(program.wait(), 10.0, "ending") == 0
        assert (await program.stdout.read(), await program.stderr.read()) == (b"", b"")
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
    assert (answer.status, line.count("\n")) == (200, 1)
    assert kind in line
    assert "(a, b)" in line
