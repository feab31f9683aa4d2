"""A real vLLM: a chat server and an embedding server on loopback, until the process is ended.

    python -m tests.e2e.serve_vllm --chat-port 8001 --embedding-port 8002

Installs vLLM first if need be. Starting takes 45 s of CPU time for each server, so both start at once, and at a low
priority: the tests that run meanwhile go first. Ends, and says why, as soon as one of them ends or cannot be installed.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import NoReturn

from tests.e2e import install_vllm

HERE = Path(__file__).parent
CHAT_MODEL = "tiny-chat"
EMBEDDING_MODEL = "minilm"
CONTEXT = 1024
ENV = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
}


def serve(model: str, port: int, *flags: str) -> subprocess.Popen[bytes]:
    program = str(install_vllm.bin_path("vllm"))
    command = [program, "serve", model, "--host", "127.0.0.1", "--port", str(port), "--enforce-eager", *flags]
    print("starting:", *command[1:], flush=True)
    # The working directory holds the chat model, so that no path shows up as its name.
    env = {**os.environ, **ENV}
    # Compiled modules are worth keeping: each server consists of three processes that import the same ones.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.Popen(["nice", "-n", "10", *command], cwd=HERE, env=env)


def end(number: int, _: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chat-port", type=int, required=True)
    parser.add_argument("--embedding-port", type=int, required=True)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, end)

    began = time.monotonic()
    try:
        install_vllm.install()
    except install_vllm.InstallError as error:
        sys.exit(f"vLLM cannot be installed: {error}")
    print(f"vLLM installed after {time.monotonic() - began:.0f} s", flush=True)

    tools = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes")
    servers = [
        serve(CHAT_MODEL, arguments.chat_port, "--max-model-len", str(CONTEXT), *tools),
        serve(str(install_vllm.embedding_model()), arguments.embedding_port, "--served-model-name", EMBEDDING_MODEL),
    ]
    try:
        while all(server.poll() is None for server in servers):
            time.sleep(0.5)
        sys.exit("a vLLM server ended")
    finally:
        for server in servers:
            server.terminate()
        for server in servers:
            server.wait()


if __name__ == "__main__":
    main()
