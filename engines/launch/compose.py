"""An engine as a service of a compose file, as plain values."""

from dataclasses import dataclass
from typing import Final

from engines.launch.command import Command, SecretFile
from engines.launch.images import GIB, START, Needs, needs_of
from engines.launch.kinds import AnyLaunch, command_of
from engines.launch.paths import WEIGHTS, in_container
from engines.launch.place import EVERYWHERE, Place
from engines.launch.shell import exporting, plain_words

Tree = dict[str, object]

ASK: Final = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=4)"
"""Exits with an error unless a URL answers with 2xx. Every image has Python; not every one has curl."""

KNOCK: Final = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), timeout=4)"
"""Exits with an error unless somebody listens at a port."""

SETTINGS: Final = "/etc/engine/settings.yaml"


@dataclass(frozen=True, slots=True)
class Composed:
    """One service, and what it needs at the top of the file."""

    name: str
    service: Tree
    volumes: tuple[str, ...]
    secrets: Tree

    def document(self) -> Tree:
        """The whole file."""
        tree: Tree = {"services": {self.name: self.service}}
        if self.volumes:
            tree["volumes"] = dict.fromkeys(self.volumes)
        if self.secrets:
            tree["secrets"] = self.secrets
        return tree


def compose(place: Place, launch: AnyLaunch) -> Composed:
    """The service that runs an engine, named as the host in the engine's URL."""
    inside, mounts = in_container(launch)
    command, needs = command_of(inside, EVERYWHERE, place.port), needs_of(launch)
    weights = launch.container.weights
    service: Tree = {"image": needs.image}
    if launch.container.profiles:
        service["profiles"] = list(launch.container.profiles)
    service |= _start(command, needs)
    service["environment"] = _environment(command)
    if place.local:
        service["ports"] = [f"127.0.0.1:{place.port}:{place.port}"]
    volumes = [f"{weights}:{WEIGHTS}", *launch.container.volumes, *mounts]
    if command.settings is not None:
        volumes.append(f"{settings_file(place, launch)}:{SETTINGS}:ro")
    service["volumes"] = volumes
    if command.secrets:
        service["secrets"] = [secret.name for secret in command.secrets]
    service |= _resources(place, launch, needs)
    service["stop_grace_period"] = f"{needs.grace}s"
    service["restart"] = "unless-stopped"
    service["healthcheck"] = _health(place, needs)
    named = (volume.partition(":")[0] for volume in volumes)
    return Composed(
        place.service,
        service,
        tuple(name for name in named if not name.startswith((".", "/", "~"))),
        {secret.name: {"file": secret.path} for secret in command.secrets},
    )


def settings_file(place: Place, launch: AnyLaunch) -> str:
    """Where the file of further settings is, from the folder of the compose file."""
    written = getattr(launch, "settings_file", None)
    return written if isinstance(written, str) else f"./{place.service}.trtllm.yaml"


def _start(command: Command, needs: Needs) -> Tree:
    """The entry point and the command. Secrets need a shell, which reads them from where compose puts them."""
    if command.secrets:
        line = _literal(exporting(_with_secrets_inside(command), SETTINGS))
        shell = ["/bin/sh", "-c"]
        return {"entrypoint": shell, "command": [line]} if needs.entrypoint else {"command": [*shell, line]}
    words = [_literal(word) for word in plain_words(command, SETTINGS)]
    first, rest = words[: needs.entrypoint], words[needs.entrypoint :]
    return {"entrypoint": first, "command": rest} if first else {"command": rest}


def _with_secrets_inside(command: Command) -> Command:
    words = tuple(_inside(word) if isinstance(word, SecretFile) else word for word in command.words)
    variables = {
        name: _inside(one) if isinstance(one, SecretFile) else one for name, one in command.environment.items()
    }
    return Command(words, variables, command.settings)


def _inside(secret: SecretFile) -> SecretFile:
    return SecretFile(f"/run/secrets/{secret.name}")


def _literal(text: str) -> str:
    """Compose reads `$` as the beginning of a variable."""
    return text.replace("$", "$$")


def _environment(command: Command) -> Tree:
    """GPUs are chosen from outside: within, they are numbered anew."""
    own = {
        name: _literal(value)
        for name, value in command.environment.items()
        if isinstance(value, str) and name != "CUDA_VISIBLE_DEVICES"
    }
    return {"HF_HOME": WEIGHTS, "HF_TOKEN": "${HF_TOKEN:-}", **own}


def _resources(place: Place, launch: AnyLaunch, needs: Needs) -> Tree:
    size, tree = launch.container.shared_memory, dict[str, object]()
    if size is not None or not needs.gpus:
        size = size or 4 * GIB
        tree["shm_size"] = f"{size // GIB}gb" if size % GIB == 0 else f"{size}b"
    else:
        tree["ipc"] = "host"
    if needs.limits:
        tree["ulimits"] = {"memlock": -1, "stack": 64 * 2**20}
    if not needs.gpus:
        # Lets vLLM bind its threads and memory to the processor's nodes.
        tree["cap_add"] = ["SYS_NICE"]
        return tree
    device: Tree = {"driver": "nvidia", "capabilities": ["gpu"]}
    if len(launch.devices) == 1:
        variable = place.service.upper().replace("-", "_")
        device["device_ids"] = [f"${{{variable}_GPU:-{launch.devices[0]}}}"]
    elif launch.devices:
        device["device_ids"] = list(launch.devices)
    else:
        device["count"] = needs.gpus
    tree["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    return tree


def _health(place: Place, needs: Needs) -> Tree:
    asked = [KNOCK, str(place.port)] if needs.health is None else [ASK, f"http://127.0.0.1:{place.port}{needs.health}"]
    return {
        "test": ["CMD", "python3", "-c", *asked],
        "interval": "10s",
        "timeout": "5s",
        "retries": 3,
        "start_period": f"{START // 60}m",
    }
