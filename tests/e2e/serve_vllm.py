"""A real vLLM: a chat server and an embedding server on loopback, until the process is ended.

    python -m tests.e2e.serve_vllm --chat-port 8001 --embedding-port 8002

Each is started as an operator would start it: `turnout engines run`, with launch settings. Installs vLLM first if need
be. Starting takes 45 s of CPU time for each server, so both start at once, and at a low priority: the tests that run
meanwhile go first. Ends, and says why, as soon as one of them ends or cannot be installed.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
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
}


LAUNCHES = """\
engines:
  chat:
    kind: vllm
    urls: [http://127.0.0.1:{chat}]
    launch:
      {{model: {chat_model}, max_model_len: {context}, tool_parser: hermes,
       device: cpu, cpu_kv_cache: 1GiB, enforce_eager: true}}
  embedder:
    kind: vllm
    urls: [http://127.0.0.1:{embedding}]
    launch:
      {{model: {folder}, served_names: [{embedding_model}], device: cpu, cpu_kv_cache: 1GiB, enforce_eager: true}}
models:
  {chat_model}: {{engine: chat}}
  {embedding_model}: {{engine: embedder, task: embedding}}
"""


def run(engine: str, config: Path) -> subprocess.Popen[bytes]:
    """The server that the launch settings of an engine describe."""
    path = f"{install_vllm.bin_path('vllm').parent}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable, "-m", "gateway", "engines", "run", engine, "--config", str(config)]
    return start(command, {"PATH": path})


def serve(model: str, port: int, *flags: str) -> subprocess.Popen[bytes]:
    """A further server, with flags that no launch settings would have."""
    program = str(install_vllm.bin_path("vllm"))
    command = [program, "serve", model, "--host", "127.0.0.1", "--port", str(port), "--enforce-eager", *flags]
    print("starting:", *command[1:], flush=True)
    return start(command, {"VLLM_CPU_KVCACHE_SPACE": "1"})


def start(command: list[str], variables: dict[str, str]) -> subprocess.Popen[bytes]:
    # The working directory holds the chat model, so that no path shows up as its name.
    env = {**os.environ, **ENV, **variables}
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

    with tempfile.NamedTemporaryFile("w", prefix="turnout-e2e-", suffix=".yaml", delete=False) as file:
        file.write(
            LAUNCHES.format(
                chat=arguments.chat_port,
                embedding=arguments.embedding_port,
                chat_model=CHAT_MODEL,
                embedding_model=EMBEDDING_MODEL,
                folder=install_vllm.embedding_model(),
                context=CONTEXT,
            )
        )
    config = Path(file.name)
    servers = [run("chat", config), run("embedder", config)]
    try:
        while all(server.poll() is None for server in servers):
            time.sleep(0.5)
        sys.exit("a vLLM server ended")
    finally:
        for server in servers:
            server.terminate()
        for server in servers:
            server.wait()
        config.unlink()


if __name__ == "__main__":
    main()
