"""A real vLLM behind a real gateway, one of each for the whole suite.

vLLM is started as soon as the tests are chosen and loads while the others run: the end-to-end tests come last. They
fail, and say why, where vLLM cannot be installed. ``TURNOUT_E2E=off`` leaves them out; it is for work without them, and
refused in CI.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from openai import OpenAI

from tests.e2e.serve_vllm import CHAT_MODEL, EMBEDDING_MODEL
from tests.running import LOOPBACK, Running, answers, free_port, running, start

PATIENCE = 240.0
"""Seconds that vLLM may take to start, on a busy machine."""

ENGINE = pytest.StashKey["Engine"]()


@dataclass(frozen=True, slots=True)
class Engine:
    """A vLLM chat server and a vLLM embedding server."""

    process: Running
    chat_port: int
    embedding_port: int

    @property
    def chat_url(self) -> str:
        return f"http://{LOOPBACK}:{self.chat_port}"

    @property
    def embedding_url(self) -> str:
        return f"http://{LOOPBACK}:{self.embedding_port}"

    def ready(self) -> bool:
        return answers(f"{self.chat_url}/health") and answers(f"{self.embedding_url}/health")

    def metric(self, name: str) -> float:
        """A number of the chat server's metrics, summed over its labels."""
        lines = httpx2.get(f"{self.chat_url}/metrics", timeout=5).text.splitlines()
        found = [float(line.rpartition(" ")[2]) for line in lines if line.startswith(name + "{")]
        assert found, f"{name} is not among vLLM's metrics"
        return sum(found)


def is_e2e(item: pytest.Item) -> bool:
    return item.get_closest_marker("e2e") is not None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Puts the end-to-end tests at the end, and gives them time to wait for vLLM."""
    chosen = [item for item in items if is_e2e(item)]
    others = [item for item in items if not is_e2e(item)]
    if chosen and os.environ.get("TURNOUT_E2E") == "off":
        if os.environ.get("CI"):
            raise pytest.UsageError("TURNOUT_E2E=off is not for CI")
        config.hook.pytest_deselected(items=chosen)
        chosen = []
    for item in chosen:
        item.add_marker(pytest.mark.timeout(PATIENCE + 60))
    items[:] = others + chosen


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.config.option.collectonly or not any(is_e2e(item) for item in session.items):
        return
    chat, embedding = free_port(), free_port()
    ports = ["--chat-port", str(chat), "--embedding-port", str(embedding)]
    process = start(
        "vllm",
        [sys.executable, "-m", "tests.e2e.serve_vllm", *ports],
        Path(tempfile.mkdtemp(prefix="turnout-e2e-")),
        env={"PYTHONPATH": str(session.config.rootpath)},
    )
    session.config.stash[ENGINE] = Engine(process, chat, embedding)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    engine = session.config.stash.get(ENGINE, None)
    if engine is None:
        return
    engine.process.stop()
    if exitstatus == pytest.ExitCode.OK:
        shutil.rmtree(engine.process.log.parent)
    else:
        print(f"\nvLLM's output: {engine.process.log}")


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest) -> Engine:
    """The running vLLM."""
    engine = request.config.stash[ENGINE]
    engine.process.wait_until(engine.ready, PATIENCE)
    return engine


CONFIG = """\
engines:
  chat: {{kind: vllm, urls: [{chat}]}}
  embedder: {{kind: vllm, urls: [{embedding}]}}
  absent: {{kind: vllm, urls: [{absent}]}}
models:
  {chat_model}:
    engine: chat
    aliases: [gpt-4o-mini]
  {embedding_model}:
    engine: embedder
    task: embedding
    aliases: [text-embedding-3-small]
  ranker:
    engine: embedder
    task: rerank
    model: {embedding_model}
  unreachable:
    engine: absent
    model: {chat_model}
"""


@pytest.fixture(scope="session")
def gateway_url(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A gateway started the way an operator starts it."""
    folder = tmp_path_factory.mktemp("gateway")
    config = folder / "turnout.yaml"
    config.write_text(
        CONFIG.format(
            chat=engine.chat_url,
            embedding=engine.embedding_url,
            absent=f"http://{LOOPBACK}:{free_port()}",
            chat_model=CHAT_MODEL,
            embedding_model=EMBEDDING_MODEL,
        )
    )
    port = free_port()
    url = f"http://{LOOPBACK}:{port}"
    turnout = str(Path(sys.executable).with_name("turnout"))
    command = [turnout, "serve", "--config", str(config), "--host", LOOPBACK, "--port", str(port)]
    with running("gateway", command, folder) as gateway:
        gateway.wait_until(lambda: answers(f"{url}/readyz"), 30)
        yield url


@pytest.fixture
def client(gateway_url: str) -> Iterator[OpenAI]:
    """The official SDK, pointed at the gateway; it does not retry by itself, so that a test sees every answer."""
    with OpenAI(base_url=f"{gateway_url}/v1", api_key="unused", max_retries=0, timeout=60) as client:
        yield client
