"""What docker-compose.yml describes works, without a container engine.

Two real implementations of compose read the file. Then each service's own command runs as a process, with a loopback
address of its own in place of the container's network, so that ports stay as they are written.
"""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest
import redis
from openai import OpenAI
from ruamel.yaml import YAML

from gateway.cli import main
from tests.conftest import ROOT
from tests.running import Running, eventually, running

COMPOSE = ROOT / "docker-compose.yml"
CONFIGS = ROOT / "config" / "compose"
DEFAULT = {"gateway", "redis", "simulated-vllm", "simulated-trtllm", "simulated-triton"}
ENGINES = {
    "simulated": {"simulated-vllm", "simulated-trtllm", "simulated-triton"},
    "cpu": {"vllm-cpu"},
    "gpu": {"vllm", "trtllm", "triton"},
}

Tree = dict[str, Any]


def parse(text: str) -> Tree:
    tree: Tree = YAML(typ="safe", pure=True).load(text)
    return tree


def compose_config(command: list[str]) -> Tree:
    """The file with its variables, anchors and defaults filled in."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("COMPOSE_", "ENGINES"))}
    done = subprocess.run(
        [*command, "-f", str(COMPOSE), "--profile", "cpu", "--profile", "gpu", "config"],
        check=False,
        capture_output=True,
        text=True,
        env=env,
    )
    assert done.returncode == 0, done.stderr
    return parse(done.stdout)


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """The services as podman-compose reads them; of podman itself it only wants to know the version."""
    podman = tmp_path_factory.mktemp("podman") / "podman"
    podman.write_text("#!/bin/sh\necho podman version 5.0.0\n")
    podman.chmod(0o755)
    found = compose_config([sys.executable, "-m", "podman_compose", "--podman-path", str(podman)])["services"]
    assert isinstance(found, dict)
    return found


def succeeds(command: list[str]) -> bool:
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def docker_compose() -> list[str]:
    """Docker's own implementation: the plugin, or the older program."""
    for command in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(command[0]) and succeeds([*command, "version"]):
            return command
    assert "CI" not in os.environ, ".ci/run installs docker-compose"
    pytest.skip("neither docker compose nor docker-compose is installed")


def test_docker_accepts_the_file_and_reads_it_as_podman_does(services: Tree) -> None:
    theirs = compose_config(docker_compose())["services"]

    assert set(theirs) == set(services) == DEFAULT | ENGINES["cpu"] | ENGINES["gpu"]
    for name, service in services.items():
        assert theirs[name]["command"] == service["command"]
        assert theirs[name]["healthcheck"]["test"] == service["healthcheck"]["test"]
        assert theirs[name].get("profiles") == service.get("profiles")


def option(command: list[str], flag: str) -> str:
    return command[command.index(flag) + 1]


@pytest.mark.parametrize("choice", ENGINES)
def test_each_gateway_configuration_names_the_services_of_its_profile(services: Tree, choice: str) -> None:
    config = parse((CONFIGS / f"{choice}.yaml").read_text())

    addresses = [urlsplit(url) for engine in config["engines"].values() for url in engine["urls"]]
    assert {address.hostname for address in addresses} == ENGINES[choice]
    for address in addresses:
        command = services[address.hostname]["command"]
        port = "--openai-port" if "--openai-port" in command else "--port"
        assert str(address.port) == option(command, port)
        assert option(command, "--host") == "0.0.0.0"


@pytest.mark.parametrize("choice", ENGINES)
def test_each_gateway_configuration_is_valid(choice: str) -> None:
    command = [sys.executable, "-m", "gateway", "check", str(CONFIGS / f"{choice}.yaml")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr


def test_each_gpu_engine_has_a_gpu_weights_and_a_health_check(services: Tree) -> None:
    for name in ENGINES["gpu"]:
        (device,) = services[name]["deploy"]["resources"]["reservations"]["devices"]
        assert device["capabilities"] == ["gpu"]
        assert len(device["device_ids"]) == 1
        assert services[name]["ipc"] == "host"
        assert services[name]["environment"]["HF_HOME"] == "/models"
    for name in ("trtllm", "triton"):
        assert services[name]["ulimits"] == {"memlock": -1, "stack": 64 * 2**20}


SERVICES = {
    "vllm-cpu": ("cpu", "vllm"),
    "vllm": ("gpu", "vllm"),
    "trtllm": ("gpu", "trtllm"),
    "triton": ("gpu", "triton"),
}


@pytest.mark.parametrize("service", SERVICES)
def test_each_engines_service_is_what_its_launch_settings_make(service: str, tmp_path: Path) -> None:
    """`make config` renews them; each is renewed here, and the file stays as it is."""
    choice, engine = SERVICES[service]
    copy = tmp_path / "docker-compose.yml"
    copy.write_text(COMPOSE.read_text())

    config = str(CONFIGS / f"{choice}.yaml")
    assert main(["engines", "compose", engine, "--config", config, "--into", str(copy)]) == 0
    assert copy.read_text() == COMPOSE.read_text(), "stale: run `make config`"


def test_the_file_of_trtllms_further_settings_is_what_its_launch_settings_make(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["engines", "command", "trtllm", "--settings", "--config", "config/compose/gpu.yaml"]) == 0

    assert capsys.readouterr().out == (ROOT / "config/engines/trtllm.yaml").read_text(), "stale: run `make config`"


def test_tritons_model_repository_is_complete() -> None:
    config = parse((CONFIGS / "gpu.yaml").read_text())
    repository = ROOT / "config" / "engines" / "triton"
    models = {name for name, model in config["models"].items() if model["engine"] == "triton"}

    assert {folder.name for folder in repository.iterdir()} == models
    for name in models:
        assert 'backend: "vllm"' in (repository / name / "config.pbtxt").read_text()
        assert (repository / name / "1" / "model.json").is_file()


@dataclass(frozen=True, slots=True)
class Stack:
    """The default services as processes, each at a loopback address of its own."""

    addresses: dict[str, str]
    running: dict[str, Running]

    def wait(self, name: str, check: list[str]) -> None:
        """Waits until a service's own health check finds it healthy."""
        kind, program, *arguments = check
        assert (kind, program) == ("CMD", "python3")
        command = [sys.executable, *(argument.replace("127.0.0.1", self.addresses[name]) for argument in arguments)]
        self.running[name].wait_until(lambda: succeeds(command), 60)


@pytest.fixture(scope="module")
def network() -> str:
    """The beginning of loopback addresses that no other run of these tests is likely to use."""
    return f"127.{random.randint(1, 254)}.{random.randint(1, 254)}"


@pytest.fixture(scope="module")
def stack(services: Tree, network: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("compose")
    names = sorted(DEFAULT - {"redis"})
    addresses = {name: f"{network}.{number}" for number, name in enumerate(names, 10)}
    for path in CONFIGS.iterdir():
        text = path.read_text()
        for name, address in addresses.items():
            text = text.replace(f"//{name}:", f"//{address}:")
        (folder / path.name).write_text(text)

    with ExitStack() as exits:
        programs = {}
        for name in names:
            program, *arguments = services[name]["command"]
            assert program == "turnout"
            local = [
                argument.replace("0.0.0.0", addresses[name]).replace("/etc/turnout", str(folder))
                for argument in arguments
            ]
            turnout = str(Path(sys.executable).with_name("turnout"))
            programs[name] = exits.enter_context(running(name, [turnout, *local], folder))
        stack = Stack(addresses, programs)
        for name in names:
            stack.wait(name, services[name]["healthcheck"]["test"])
        yield stack


@pytest.fixture
def client(stack: Stack) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"http://{stack.addresses['gateway']}:8080/v1", api_key="unused", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("model", ["demo-vllm", "demo-trtllm", "demo-triton", "demo"])
def test_every_model_of_the_default_services_answers(client: OpenAI, model: str) -> None:
    messages: list[openai.types.chat.ChatCompletionMessageParam] = [{"role": "user", "content": "Hello"}]
    answer = client.chat.completions.create(model=model, messages=messages)
    chunks = list(client.chat.completions.create(model=model, messages=messages, stream=True))

    assert answer.choices[0].message.content
    assert answer.model == model
    assert {chunk.model for chunk in chunks} == {model}
    assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def test_the_models_are_listed(client: OpenAI) -> None:
    assert {model.id for model in client.models.list()} == {"demo", "demo-vllm", "demo-trtllm", "demo-triton"}


@pytest.mark.skipif("CI" not in os.environ and not shutil.which("redis-server"), reason="redis-server is not installed")
def test_redis_starts_with_its_command(services: Tree, network: str, tmp_path: Path) -> None:
    address = f"{network}.9"
    command = [*services["redis"]["command"], "--bind", address]
    with (
        running("redis", command, tmp_path) as program,
        redis.Redis(host=address, port=6379, socket_timeout=2) as connection,
    ):

        def answers() -> bool:
            try:
                return connection.ping() is True
            except redis.ConnectionError:
                return False

        program.wait_until(answers, 10)
        assert connection.config_get("save") == {"save": ""}


def test_a_stopped_gateway_lets_go_within_the_grace_period(services: Tree, stack: Stack) -> None:
    """Runs last in this file: it ends the gateway the way `docker compose down` does."""
    assert services["gateway"]["stop_grace_period"] == "40s"

    assert stack.running["gateway"].stop(40) == 0
    assert eventually(lambda: not stack.running["gateway"].alive, 1)
