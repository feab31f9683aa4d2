"""Simulated engines, a gateway in front of them, and what each client library made of its answers.

The libraries are installed on first use. The tests fail, and say why, where that cannot be done.
``TURNOUT_CLIENTS=off`` leaves them out; it is for work without them, and refused in CI.
"""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from engines.profile import EngineKind
from tests.clients.install import CLIENTS, LLAMA_INDEX, NODE, InstallError, install, node, python
from tests.running import LOOPBACK, free_port, running
from tests.support.json_type import Json
from tests.support.process import clean_environment

HERE = Path(__file__).parent
PATIENCE = 240.0
"""Seconds that installing, and a library's calls, may take on a busy machine."""

EMBEDDING = "mini"
KINDS = [kind.value for kind in EngineKind]
MODELS = [*KINDS, *(f"{kind}-raw" for kind in KINDS)]
"""A model of each kind of engine with its tool parser, and one without, whose tool calls the gateway finds."""
FORMATS = {EngineKind.VLLM: "hermes", EngineKind.TRTLLM: "hermes", EngineKind.TRITON: "llama3"}

SCRIPTS = {
    "openai-python-3": (CLIENTS, "openai_sdk"),
    "openai-python-2": (LLAMA_INDEX, "openai_sdk"),
    "langchain": (CLIENTS, "langchain_agent"),
    "llama-index": (LLAMA_INDEX, "llama_index_agent"),
    "pydantic-ai": (CLIENTS, "pydantic_ai_agent"),
    "openai-node": (NODE, "openai.mjs"),
    "ai-sdk": (NODE, "ai.mjs"),
}
LIBRARIES = list(SCRIPTS)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = [item for item in items if HERE in item.path.parents]
    for item in chosen:
        item.add_marker(pytest.mark.timeout(2 * PATIENCE))
    if chosen and os.environ.get("TURNOUT_CLIENTS") == "off":
        if os.environ.get("CI"):
            raise pytest.UsageError("TURNOUT_CLIENTS=off is not for CI")
        config.hook.pytest_deselected(items=chosen)
        items[:] = [item for item in items if item not in chosen]


@pytest.fixture(scope="session")
def obstacle() -> str | None:
    """Why the libraries cannot be installed, if they cannot."""
    try:
        install()
    except InstallError as error:
        return str(error)
    return None


def configuration(ports: Mapping[EngineKind, int]) -> Json:
    """One name for each model, so that what a library gets from each engine can be compared."""
    engines: Json = {kind.value: {"kind": kind.value, "urls": [f"http://{LOOPBACK}:{ports[kind]}"]} for kind in ports}
    engines[EngineKind.TRTLLM.value]["guided_decoding"] = True
    models: Json = {kind.value: {"engine": kind.value, "model": "tiny"} for kind in ports}
    for kind, form in FORMATS.items():
        tools = {"format": form, "parse": "gateway"}
        models[f"{kind.value}-raw"] = {"engine": kind.value, "model": "bare", "tools": tools}
    models[EMBEDDING] = {"engine": EngineKind.VLLM.value, "task": "embedding"}
    return {"engines": engines, "models": models}


@pytest.fixture(scope="session")
def gateway_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Programs started the way a user starts them."""
    folder = tmp_path_factory.mktemp("clients")
    turnout = [sys.executable, "-m", "gateway"]
    ports = {kind: free_port() for kind in EngineKind}
    gateway = f"http://{LOOPBACK}:{(port := free_port())}"
    config = folder / "turnout.yaml"
    config.write_text(json.dumps(configuration(ports)))
    with ExitStack() as stack:
        for kind in EngineKind:
            models = ["--model", "tiny", "--model", "bare:noparser"]
            if kind is EngineKind.VLLM:
                models += ["--model", f"{EMBEDDING}:embedding"]
            command = [*turnout, "simulate", kind.value, "--port", str(ports[kind]), *models]
            stack.enter_context(running(kind.value, command, folder))
        serve = [*turnout, "serve", "--config", str(config), "--host", LOOPBACK, "--port", str(port)]
        program = stack.enter_context(running("gateway", serve, folder))
        program.wait_until(lambda: health(gateway) == "ready", 60)
        yield gateway


def health(gateway: str) -> Json:
    """What the gateway says of itself and its engines; nothing while it does not listen."""
    try:
        with urllib.request.urlopen(f"{gateway}/readyz", timeout=2) as answer:
            return json.load(answer)["status"]
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class Report:
    """What a library's script printed."""

    library: str
    code: int
    cases: Json
    errors: str

    def outcome(self, case: str, model: str) -> Json:
        """What a case came to.

        Raises:
            AssertionError: when the script itself failed, with its error output.
        """
        assert self.code == 0, f"{self.library} ended with code {self.code}:\n{self.errors[-6000:]}"
        return self.cases[case][model]

    def gave(self, case: str, model: str) -> Json:
        """What a case gave.

        Raises:
            AssertionError: with what the library raised.
        """
        outcome = self.outcome(case, model)
        assert "gave" in outcome, outcome["trace"]
        return outcome["gave"]


def run_library(library: str, url: str) -> Report:
    environment, script = SCRIPTS[library]
    command: list[str | Path]
    if environment is NODE:
        command = [node(), NODE / script]
    else:
        command = [python(environment), "-m", f"tests.clients.libraries.{script}"]
    arguments = {"base_url": f"{url}/v1", "models": MODELS, "embedding": EMBEDDING}
    done = subprocess.run(
        [*command, json.dumps(arguments)],
        cwd=HERE.parent.parent,
        env=clean_environment(LANGSMITH_TRACING="false", AI_SDK_LOG_WARNINGS="false"),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return Report(library, done.returncode, json.loads(done.stdout) if done.returncode == 0 else {}, done.stderr)


@pytest.fixture(scope="session")
def reports(
    request: pytest.FixtureRequest, obstacle: str | None, gateway_url: str
) -> Iterator[Mapping[str, Future[Report]]]:
    """The libraries that chosen tests are about, two at a time."""
    if obstacle:
        pytest.fail("the client libraries are not installed: test_install.py says why", pytrace=False)
    chosen = {library for item in request.session.items if HERE in item.path.parents for library in named(item)}
    with ThreadPoolExecutor(2) as pool:
        yield {library: pool.submit(run_library, library, gateway_url) for library in LIBRARIES if library in chosen}


def named(item: pytest.Item) -> list[str]:
    """The library that a test is about."""
    parameters: Json = getattr(item, "callspec", None)
    return [parameters.params["library"]] if parameters and "library" in parameters.params else []


@pytest.fixture
def report(reports: Mapping[str, Future[Report]], library: str) -> Report:
    return reports[library].result()
